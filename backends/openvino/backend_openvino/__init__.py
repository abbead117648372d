"""Run OpenVINO models and other formats that OpenVINO reads (ONNX, TensorFlow, TensorFlow Lite, Paddle).

    backend.py    Backend and Model: compiled models and how instances share them
    reading.py    read a model from a file; errors with advice
    tensors.py    the inputs and outputs of a model with core's datatypes
    complete.py   complete a configuration from the model file
    check.py      refuse a configuration that the model file contradicts
    fitting.py    change datatypes, shapes and batch dimension of a model to fit the configuration
    settings.py   settings for OpenVINO in config.pbtxt
    instance.py   execute: tensors ─► infer ─► arrays
    feeding.py    set one input of an infer request
    text.py       convert text to and from OpenVINO tensors
    termination.py
                  end a run after all its requests are cancelled

The import of this package imports openvino. It happens when the first model needs this backend.
"""

from backend_openvino.backend import backend

__all__ = ["backend"]
