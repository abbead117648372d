"""What ModelInfer and ModelStreamInfer do with a message before the server gets it."""

from __future__ import annotations

import re

from core.config import Signature
from core.config.model_version import parse_version
from core.control import ModelEndpoint
from core.request import InferenceRequest
from core.server import InferenceServer
from core.v2 import forward_header
from frontends.grpc.call import GrpcCall
from frontends.grpc.native.infer_codec import RequestReader
from frontends.grpc.options import GrpcOptions
from frontends.grpc.protocol.messages import ModelInferRequest
from frontends.grpc.protocol.parse import parse, read

# What a message asks: the request itself, or a message that becomes one the long way, perhaps.
Asked = InferenceRequest | ModelInferRequest


class Inbound:
    """Finds the model of a message and makes the request for it. Loop thread only."""

    def __init__(self, server: InferenceServer):
        self._server = server
        self._endpoints = server.models.endpoints
        pattern = GrpcOptions.of(server.options).grpc_header_forward_pattern
        self._forwarded = re.compile(pattern) if pattern else None
        self._reader = RequestReader()

    def read(self, data: bytes, call: GrpcCall) -> Asked:
        """What the bytes ask. `call` holds the tensors that are made of typed contents.

        Raises CoreError(INVALID) for bytes that are no message, MemoryExhausted.
        """
        request = self._reader.read(data, call)
        return request if request is not None else read(data)

    def made_bytes(self) -> int:
        """How many bytes the call holds for the tensors of the last message."""
        return self._reader.held

    def endpoint(self, asked: Asked) -> ModelEndpoint:
        """Of the model that it is for.

        Raises CoreError for a version that is no number and for what is not there.
        """
        if isinstance(asked, InferenceRequest):
            request: InferenceRequest = asked
            return self._endpoints.find(request.model_name, request.model_version)
        return self._endpoints.find(asked.model_name, parse_version(asked.model_version))

    def request(self, asked: Asked, signature: Signature, call: GrpcCall) -> InferenceRequest:
        """The request that the call makes of it; raises CoreError for a message that is none."""
        if isinstance(asked, InferenceRequest):
            request: InferenceRequest = asked
        else:
            version = parse_version(asked.model_version)
            request = parse(asked, version, signature, self._server.shared_memory)
        request.deadline_ns = call.deadline_ns
        if self._forwarded is not None:
            self._forward(self._forwarded, request, call)
        return request

    @staticmethod
    def _forward(pattern: re.Pattern[str], request: InferenceRequest, call: GrpcCall) -> None:
        """Make parameters of the metadata whose keys match (--grpc-header-forward-pattern)."""
        for key, value in call.metadata:
            if pattern.search(key) is None:
                continue
            forward_header(
                request, key, value if isinstance(value, str) else value.decode("latin-1")
            )
