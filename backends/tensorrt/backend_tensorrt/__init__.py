"""TensorRT engines, run by TensorRT's Python interface, with memory and streams of CuPy.

    backend.py     Backend and Model: what core calls; who shares an engine
    library.py     TensorRT (or its lean or dispatch runtime) and CuPy, and what to do when one is missing
    problems.py    what TensorRT and CUDA report, in words that say what to do
    reports.py     what TensorRT logs: into our log, and into the texts of errors
    loading.py     an engine from a file
    facts.py       what an engine takes and gives, read once, without TensorRT's types
    complete.py    what the engine knows, written into a configuration
    check.py       a configuration that the engine contradicts is refused
    settings.py    what config.pbtxt and --backend-config ask for
    profiles.py    which optimization profile a batch runs with
    graphs.py      which CUDA graph a batch runs with
    feed.py        the inputs of a batch: shapes, and which bytes go where
    slot.py        the memory of one batch under way
    run.py         one batch: copies, execution, copies back
    instance.py    what core calls; two batches under way, so that copies overlap with computation
    answers.py     arrays back to requests; arrays that stay on the device
    cuda.py        all that is asked of CUDA, as protocols; with CuPy behind them

Only cuda.py, loading.py, facts.py, slot.py and run.py touch CUDA or TensorRT. Neither is imported before a
model needs it.
"""

from backend_tensorrt.backend import backend

__all__ = ["backend"]
