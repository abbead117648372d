"""Run TensorRT engines through TensorRT's Python interface, with memory and streams of CuPy.

    backend.py     Backend and Model: engines and how instances share them
    library.py     import TensorRT (or its lean or dispatch runtime) and CuPy; errors with advice
    problems.py    errors with advice for reports of TensorRT and CUDA
    reports.py     the log of TensorRT: into our log, and into the texts of errors
    loading.py     make an engine from a file
    facts.py       inputs, outputs and profiles of an engine, without TensorRT's types
    complete.py    complete a configuration from the engine
    check.py       refuse a configuration that the engine contradicts
    settings.py    settings in config.pbtxt and --backend-config
    profiles.py    choose the optimization profile of a batch
    graphs.py      choose the CUDA graph of a batch
    feed.py        the inputs of a batch: shapes and sources of the bytes
    context.py     one execution context: shapes, addresses, enqueue
    slot.py        the memory of one batch in flight
    run.py         one batch: copies, execution, copies back
    instance.py    begin and finish batches; several are in flight, so that copies overlap with computation
    answers.py     split outputs by request; arrays that stay on the device
    cuda.py        the functions of CUDA that are needed, as protocols, and their implementation with CuPy

Only cuda.py, loading.py, facts.py, context.py, slot.py and run.py use CUDA or TensorRT. Neither is imported
before a model needs it.
"""

from backend_tensorrt.backend import backend

__all__ = ["backend"]
