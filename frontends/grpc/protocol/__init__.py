"""Decode messages into core's types, and encode responses.

    bytes ─► decode ─► parse ─► InferenceRequest        InferenceResponse ─► render ─► bytes

frontends/grpc/native/infer_request.pyx reads most messages of inference. This package handles the others.

messages.py health_messages.py   the message classes, from the .proto files here
decode.py                        bytes → message
parse.py contents.py             ModelInferRequest → InferenceRequest; typed contents → tensors
parameters.py                    values of parameters, of requests, inputs, outputs and responses
render.py                        InferenceResponse → bytes
"""
