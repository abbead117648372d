"""Instructions that one request costs in the process, counted by valgrind: no clock, no noise of others."""
