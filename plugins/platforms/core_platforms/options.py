"""The flags of SageMaker and Vertex AI, and the environment variables of Vertex AI.

cloud.google.com/vertex-ai/docs/predictions/custom-container-requirements describes the variables.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.options import Listener, Options, Section, UsageError, group
from core.options.values import BOOL, PORT, STRING, Form, integer, not_a_pair, read_int

MODE = "AIP_MODE"
HTTP_PORT = "AIP_HTTP_PORT"
PREDICT_ROUTE = "AIP_PREDICT_ROUTE"
HEALTH_ROUTE = "AIP_HEALTH_ROUTE"
STORAGE = "AIP_STORAGE_URI"

EVERYWHERE = "0.0.0.0"
"""Address of the platforms' ports: requests arrive from outside of the container."""

_PORT = 8080
_ONE_LOOP = "one event loop serves all connections"
_WITHOUT_TLS = (
    "--allow-sagemaker and --allow-vertex-ai listen for other machines without TLS, as "
    "their platforms want it; say --secure-without-tls if the platform has it"
)

_sagemaker = group("Sagemaker")
_vertex = group("Vertex")


def _read_range(flag: str, text: str) -> tuple[int, int]:
    first, dash, second = text.partition("-")
    if not dash:
        raise not_a_pair(flag, "<first>-<second>", text)
    return read_int(flag, first), read_int(flag, second)


_PORT_RANGE = Form("<integer>-<integer>", _read_range)


@dataclass(kw_only=True)
class SageMakerOptions(Section):
    """The flags of SageMaker."""

    # fmt: off
    allow_sagemaker: bool = _sagemaker(BOOL, False,
        "Serve the endpoints of Amazon SageMaker (docs/operate/platforms.md).")
    sagemaker_port: int = _sagemaker(PORT, 8080,
        "Port of SageMaker's endpoints.")
    sagemaker_safe_port_range: tuple[int, int] | None = _sagemaker(_PORT_RANGE, None,
        "Ports that the other frontends may use beside SageMaker's.")
    sagemaker_thread_count: int = _sagemaker(integer(1), 8,
        "Threads that handle SageMaker's requests.", idle=_ONE_LOOP)
    # fmt: on

    def listeners(self, options: Options) -> Sequence[Listener]:
        """Return the listener on SageMaker's port; none without --allow-sagemaker."""
        return _listeners(self.allow_sagemaker, "sagemaker", "SageMaker", self.sagemaker_port)

    def check_usage(self, options: Options) -> None:
        """Raise UsageError if another frontend listens on 0.0.0.0 outside of --sagemaker-safe-port-range.

        Do nothing without --allow-sagemaker or without that range. Port 0 is always allowed.
        """
        if not self.allow_sagemaker or self.sagemaker_safe_port_range is None:
            return
        first, last = self.sagemaker_safe_port_range
        for each in options.listeners():
            if each.name == "sagemaker" or each.address != EVERYWHERE or not each.port:
                continue
            if not first <= each.port <= last:
                raise UsageError(
                    f"The server cannot listen to {each.what} requests at port {each.port}, allowed port "
                    f"range is [{first}, {last}]"
                )


@dataclass(kw_only=True)
class VertexAIOptions(Section):
    """The flags of Vertex AI."""

    # fmt: off
    allow_vertex_ai: bool = _vertex(BOOL, False,
        "Serve the endpoints of Vertex AI (docs/operate/platforms.md). The default is true if "
        "AIP_MODE=PREDICTION; those of --allow-http and --allow-grpc are then false.")
    vertex_ai_port: int = _vertex(PORT, _PORT,
        "Port of Vertex AI's endpoints. AIP_HTTP_PORT sets the default.")
    vertex_ai_thread_count: int = _vertex(integer(1), 8,
        "Threads that handle Vertex AI's requests.", idle=_ONE_LOOP)
    vertex_ai_default_model: str = _vertex(STRING, "",
        "Model for Vertex AI's requests without a model name; by default the only model that serves.")
    # fmt: on

    @classmethod
    def from_environment(cls) -> Mapping[str, Any]:
        """Return name → value of the options that Vertex AI's environment variables set; {} for none.

        They set which frontends serve, the port and the repository. An invalid port is left out here.
        """
        found: dict[str, Any] = {}
        if os.environ.get(MODE) == "PREDICTION":
            found = {"allow_vertex_ai": True, "allow_http": False, "allow_grpc": False}
        if _is_port(port := os.environ.get(HTTP_PORT, "")):
            found["vertex_ai_port"] = int(port)
        if models := os.environ.get(STORAGE, ""):
            found["model_repository"] = [models]
        return found

    def check_usage(self, options: Options) -> None:
        """Raise UsageError if AIP_HTTP_PORT is set to an invalid port."""
        if (port := os.environ.get(HTTP_PORT, "")) and not _is_port(port):
            raise UsageError(f"{HTTP_PORT} is '{port}', expected the number of a port")

    def listeners(self, options: Options) -> Sequence[Listener]:
        """Return the listener on Vertex AI's port; none without --allow-vertex-ai."""
        return _listeners(self.allow_vertex_ai, "vertex_ai", "Vertex AI", self.vertex_ai_port)


def _listeners(allowed: bool, name: str, what: str, port: int) -> Sequence[Listener]:
    return (Listener(name, what, EVERYWHERE, port, without_tls=_WITHOUT_TLS),) if allowed else ()


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 5 and int(text) < 65536
