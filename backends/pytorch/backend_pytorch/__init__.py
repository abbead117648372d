"""Run PyTorch models: TorchScript, AOTInductor packages, exported programs, modules in Python.

    backend.py      Backend and Model: programs and how instances share them
    framework.py    import torch for the first model; errors of torch
    threads.py      settings of the process that all models share, such as threads
    parameters.py   `parameters` of config.pbtxt
    files.py        find the model file and its kind
    program.py      Port and Program: inputs and outputs of a loaded model, and its run
    torchscript.py  a Program from a TorchScript file; effects.py finds what it writes to
    exported.py     a Program from a file of torch.export; pickles.py refuses files that would run code
    aoti.py         a Program from an AOTInductor package
    aoti_source.py  datatypes and shapes of a package's arguments, from its source
    structure.py    names in nested tuples, lists and dicts: ARGS[0][key], RESULT[1]
    module.py       a Program from an nn.Module in a Python file
    naming.py       match names of the configuration to arguments and results
    check.py        refuse a configuration that the program contradicts
    complete.py     complete a configuration from the model file
    instance.py     execute: tensors ─► run ─► arrays
    plain.py        the fast path of instance.py for models of numbers on the host
    tensors.py      numpy ⇄ torch on the host
    weights.py      memory of the weights
    device_runs.py  batches on GPUs: device_feed.py has the inputs, device_results.py the outputs
    cuda.py         streams of GPUs, copies, pinned memory

The import of this package does not import torch, which takes seconds. A broken torch only fails its models.
"""

from backend_pytorch.backend import backend

__all__ = ["backend"]
