"""ONNX models, run by ONNX Runtime.

    backend.py    Backend and Model: what core calls; who shares a session
    complete.py   what the model file knows, written into a configuration
    check.py      a configuration that the model file contradicts is refused
    graph.py      the inputs and outputs of a session, in the words of core
    session.py    a session from a file, and what to do when it cannot be made
    options.py    session and run options from config.pbtxt
    providers.py  where a session runs: CPU, CUDA, TensorRT, OpenVINO
    instance.py   execute: feed ─► run ─► outputs
    feed.py       the inputs of a batch as ONNX Runtime takes them
    run.py        one run, by feed or by binding
    device.py     arrays on the device of a session
    termination.py
                  what ends a run for which nobody waits any more

onnxruntime is imported when the first model asks for this backend, since only then this package is.
"""

import os

# ONNX Runtime reads this when it is imported. Without it, it keeps a session file in the temporary
# folder and a thread that sends usage data out; a server does neither unless its operator says so.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

from backend_onnx.backend import backend

__all__ = ["backend"]
