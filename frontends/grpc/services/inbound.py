"""What ModelInfer and ModelStreamInfer do with a message before the server gets it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from core.config import Signature
from core.errors import invalid
from core.request import InferenceRequest, parse_version
from core.server import Server
from core.tensor import Buffer
from frontends.grpc.call import Call
from frontends.grpc.protocol.messages import ModelInferRequest
from frontends.grpc.protocol.parse import parse

# Parameters with a meaning of their own, which no header may set.
_RESERVED = frozenset(
    (
        "sequence_id",
        "sequence_start",
        "sequence_end",
        "priority",
        "timeout",
        "headers",
        "binary_data_output",
    )
)


class Inbound:
    """Finds the model of a message and makes the request for it. Loop thread only."""

    def __init__(self, server: Server):
        self._server = server
        pattern = server.options.grpc_header_forward_pattern
        self._forwarded = re.compile(pattern) if pattern else None

    def target(self, message: ModelInferRequest) -> tuple[int, Signature]:
        """Version (-1 for the newest) and signature of the model that the message is for.

        Raises CoreError for a version that is no number and for what is not there.
        """
        version = parse_version(message.model_version)
        return version, self._server.signature(message.model_name, version)

    def request(
        self,
        message: ModelInferRequest,
        raw_contents: Sequence[Buffer],
        version: int,
        signature: Signature,
        call: Call,
    ) -> InferenceRequest:
        """The request of one message; raises CoreError for a message that is none."""
        request = parse(message, raw_contents, version, signature, self._server.shared_memory)
        request.deadline_ns = call.deadline_ns
        if self._forwarded is not None:
            self._forward(self._forwarded, request, call)
        return request

    @staticmethod
    def _forward(pattern: re.Pattern[str], request: InferenceRequest, call: Call) -> None:
        """Make parameters of the metadata whose keys match (--grpc-header-forward-pattern)."""
        for key, value in call.metadata:
            if pattern.search(key) is None:
                continue
            if key in _RESERVED or key.startswith("triton_"):
                raise invalid(
                    f"Header '{key}' is reserved for Triton usage and cannot be forwarded."
                )
            request.parameters[key] = value if isinstance(value, str) else value.decode("latin-1")
