"""From bytes of the wire to the nouns of core, and back.

    bytes ─► decode ─► parse ─► InferenceRequest        InferenceResponse ─► render ─► bytes

messages.py health_messages.py   the message classes, from the .proto files here (compile.py)
decode.py raw_contents.py        bytes → message; tensors stay views of the bytes
parse.py contents.py             ModelInferRequest → InferenceRequest; typed contents → tensors
parameters.py                    values of parameters, of requests, inputs, outputs and responses
render.py                        InferenceResponse → bytes
"""
