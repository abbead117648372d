"""PredictionService and ModelService of TensorFlow Serving, on the gRPC port.

tfserving.proto, messages.py   the messages
reading.py                     bytes of a request → its message, within limits
tensors.py, varints.py         TensorProto ↔ tensors
examples.py                    the examples of classify and regress → tensors
described.py                   states and metadata of models
service.py                     the methods
"""
