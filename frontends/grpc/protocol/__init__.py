"""Decode messages into core's types, and encode responses.

    bytes ─► decode ─► parse ─► InferenceRequest        InferenceResponse ─► render ─► bytes

frontends/grpc/native/infer_request.pyx reads most messages of inference. This package handles the others.
"""
