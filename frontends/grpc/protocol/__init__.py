"""From bytes of the wire to the nouns of core, and back.

    bytes ─► decode ─► parse ─► InferenceRequest        InferenceResponse ─► render ─► bytes

Ordinary messages of inference go through frontends/grpc/native/infer_request.pyx; what it leaves goes
this way.

messages.py health_messages.py   the message classes, from the .proto files here
decode.py                        bytes → message
parse.py contents.py             ModelInferRequest → InferenceRequest; typed contents → tensors
parameters.py                    values of parameters, of requests, inputs, outputs and responses
render.py                        InferenceResponse → bytes
"""
