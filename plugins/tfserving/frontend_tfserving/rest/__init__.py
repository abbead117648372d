"""The REST API of TensorFlow Serving, and version 1 of KServe's protocol, which has the same predict.

body.py       the body, without its Content-Encoding
values.py     JSON values ↔ tensors
document.py   the documents of predict, classify and regress
services.py   what answers these methods
status.py     states and metadata of models
routes.py     the table of routes
"""
