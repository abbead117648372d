"""Run ONNX models with ONNX Runtime.

    backend.py    Backend and Model: sessions and how instances share them
    complete.py   complete a configuration from the model file
    check.py      refuse a configuration that the model file contradicts
    graph.py      the inputs and outputs of a session with core's datatypes
    session.py    make a session from a file; errors with advice
    options.py    session and run options from config.pbtxt
    providers.py  execution providers: CPU, CUDA, TensorRT, OpenVINO
    instance.py   execute: feed ─► run ─► outputs
    feed.py       convert the inputs of a batch for ONNX Runtime
    run.py        one run, by feed or by binding
    device.py     arrays on the device of a session
    termination.py
                  end a run after all its requests are cancelled

The import of this package imports onnxruntime. It happens when the first model needs this backend.
"""

import os

# ONNX Runtime reads this variable during its import. Without it, it keeps a session file in the temporary
# folder and a thread that sends usage data. An operator can set the variable to allow that.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

from backend_onnx.backend import backend

__all__ = ["backend"]
