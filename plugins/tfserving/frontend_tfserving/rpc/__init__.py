"""PredictionService and ModelService of TensorFlow Serving, on the gRPC port.

tfserving.proto, messages.py   the messages
tensors.py                     TensorProto ↔ tensors
examples.py                    the examples of classify and regress → tensors
described.py                   states and metadata of models
service.py                     the methods
"""
