"""OpenVINO models, and what else OpenVINO reads (ONNX, TensorFlow, TensorFlow Lite, Paddle).

    backend.py    Backend and Model: what core calls; who shares a compiled model
    reading.py    a model from a file, and what to do when it cannot be read
    tensors.py    the inputs and outputs of a model, in the words of core
    complete.py   what the model file knows, written into a configuration
    check.py      a configuration that the model file contradicts is refused
    fitting.py    the model as the configuration wants it: datatypes, shapes, batch dimension
    settings.py   what config.pbtxt asks of OpenVINO
    instance.py   execute: tensors ─► infer ─► arrays
    feeding.py    one input of an infer request
    text.py       text, there and back
    termination.py
                  what ends a run for which nobody waits any more

openvino is imported when the first model asks for this backend, since only then this package is.
"""

from backend_openvino.backend import backend

__all__ = ["backend"]
