"""Inbound: read the messages of ModelInfer and ModelStreamInfer.

bytes ─► [Inbound] ─► InferenceRequest and the endpoint of its model
"""

from __future__ import annotations

import re

from core.config import Signature
from core.config.model_version import parse_version
from core.control import ModelEndpoint
from core.request import InferenceRequest
from core.server import InferenceServer
from frontends.grpc.call import GrpcCall
from frontends.grpc.native.infer_request import RequestReader
from frontends.grpc.options import GrpcOptions
from frontends.grpc.protocol.messages import ModelInferRequest
from frontends.grpc.protocol.parse import parse, read
from frontends.shared.memory import MemoryControl
from frontends.shared.v2 import forward_header

# The result of reading a message: the request, or a message that `parse` turns into a request.
Asked = InferenceRequest | ModelInferRequest


class Inbound:
    """Reads messages of inference, finds their endpoints, makes their requests. Event loop only."""

    def __init__(self, server: InferenceServer):
        self._endpoints = server.models.endpoints
        self._regions = MemoryControl.of(server).regions
        pattern = GrpcOptions.of(server.options).grpc_header_forward_pattern
        self._forwarded = re.compile(pattern) if pattern else None
        self._reader = RequestReader()

    def read(self, data: bytes, call: GrpcCall) -> Asked:
        """Read a message: return its request, or for a rare form the message, for `endpoint` and `request`.

        call   counts tensors of more than 512 bytes that are made here from typed contents; those that
               `request` makes of a rare form are not counted
        Raises CoreError(INVALID) for an invalid message, MemoryExhausted if the call may hold no more memory.
        """
        request = self._reader.read(data, call)
        return request if request is not None else read(data)

    def made_bytes(self) -> int:
        """Return how many bytes the last `read` has counted in its call, for tensors from typed contents."""
        return self._reader.held

    def endpoint(self, asked: Asked) -> ModelEndpoint:
        """Return the endpoint of the model version that the message names.

        Raises CoreError for an invalid version, and for a model or version that is unknown or not ready.
        """
        if isinstance(asked, InferenceRequest):
            request: InferenceRequest = asked
            return self._endpoints.find(request.model_name, request.model_version)
        return self._endpoints.find(asked.model_name, parse_version(asked.model_version))

    def request(self, asked: Asked, signature: Signature, call: GrpcCall) -> InferenceRequest:
        """Return the request of a message, with the call's deadline and the metadata to forward.

        signature   that of the model version
        Raises CoreError for an invalid request and for a reserved header name.
        """
        if isinstance(asked, InferenceRequest):
            request: InferenceRequest = asked
        else:
            version = parse_version(asked.model_version)
            request = parse(asked, version, signature, self._regions)
        request.deadline_ns = call.deadline_ns
        if self._forwarded is not None:
            self._forward(self._forwarded, request, call)
        return request

    @staticmethod
    def _forward(pattern: re.Pattern[str], request: InferenceRequest, call: GrpcCall) -> None:
        """Copy the call's metadata whose keys match --grpc-header-forward-pattern to request parameters."""
        for key, value in call.metadata:
            if pattern.search(key) is None:
                continue
            forward_header(
                request, key, value if isinstance(value, str) else value.decode("latin-1")
            )
