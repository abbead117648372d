"""PyTorch models: TorchScript, AOTInductor packages, exported programs, modules in Python.

    backend.py      Backend and Model: what core calls; who shares weights
    framework.py    torch itself, imported when the first model asks
    threads.py      the threads of the process, and its other settings that every model shares
    parameters.py   `parameters` of config.pbtxt
    files.py        which kind of file it is, by its content
    program.py      Port and Program: what a loaded model takes and gives
    torchscript.py  a Program of a TorchScript file; effects.py says what it writes to
    exported.py     a Program of torch.export's file; pickles.py refuses one that would run code
    aoti.py         a Program of an AOTInductor package
    aoti_source.py  what a package takes, from its source
    structure.py    names in nested tuples, lists and dicts: ARGS[0][key], RESULT[1]
    module.py       a Program of an nn.Module in a Python file
    naming.py       which name of the configuration is which argument or result
    check.py        a configuration that the program contradicts is refused
    complete.py     what the file knows, written into a configuration
    instance.py     execute: tensors ─► run ─► arrays
    tensors.py      numpy ⇄ torch on the host
    cuda.py         the same for a GPU: a stream, pinned memory

Importing this package imports no torch: that takes seconds, and a broken one is to fail its models only.
"""

from backend_pytorch.backend import backend

__all__ = ["backend"]
