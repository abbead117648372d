"""The parts of the module, in files with the names that Triton's have: programs import some of them."""
