"""What Vertex AI says to a container through the environment.

cloud.google.com/vertex-ai/docs/predictions/custom-container-requirements has the variables.
"""

from __future__ import annotations

import os

from core.options.values import UsageError

MODE = "AIP_MODE"
PORT = "AIP_HTTP_PORT"
PREDICT_ROUTE = "AIP_PREDICT_ROUTE"
HEALTH_ROUTE = "AIP_HEALTH_ROUTE"
STORAGE = "AIP_STORAGE_URI"

# Where the ports of platforms listen: requests come from outside of the container.
EVERYWHERE = "0.0.0.0"

_PORT = 8080


def on_vertex_ai() -> bool:
    """Whether Vertex AI has started the server to answer requests."""
    return os.environ.get(MODE) == "PREDICTION"


def elsewhere() -> bool:
    """Whether it has not: the protocols of v2 have ports then."""
    return not on_vertex_ai()


def port() -> int:
    """The port that Vertex AI sends requests to; `check_port` says whether that was one."""
    text = os.environ.get(PORT, "")
    return int(text) if _is_port(text) else _PORT


def check_port() -> None:
    """Raise UsageError if the environment names a port that is none."""
    if (text := os.environ.get(PORT, "")) and not _is_port(text):
        raise UsageError(f"{PORT} is '{text}', expected the number of a port")


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 5 and int(text) < 65536


def predict_route() -> str:
    """The path of requests for inference, "" if none is said."""
    return os.environ.get(PREDICT_ROUTE, "")


def health_route() -> str:
    """The path that tells whether the server is ready, "" if none is said."""
    return os.environ.get(HEALTH_ROUTE, "")


def storage() -> list[str]:
    """Where the models are that Vertex AI was given, as --model-repository has it."""
    return [place] if (place := os.environ.get(STORAGE, "")) else []
