"""FrontendClient: how the contract kit speaks to a frontend, over the frontend's own transport."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from core_testing.example import Arrays

CAPABILITIES = {
    "stream": "several answers to one request; needs FrontendClient.stream",
    "cancel": "who leaves before the answer cancels the request",
    "backpressure": "a model waits for a client that does not read; needs stream",
    "limits": "a bound on the bytes of a request; needs too_large, and options of the test class",
    "metadata": "the server and its models are described; needs metadata and model_metadata",
}


class FrontendClient:
    """One client. Every method is called on the loop of the test; `open` first, `close` last.

    host, port   of the frontend

    What the frontend refuses is raised as core.errors.CoreError: the kind as the transport's status means it,
    the message as the transport carries it. Whatever else goes wrong (no connection, a reset) may be any
    other exception. A call that is cancelled must give up its request, as the transport does that.
    """

    def __init__(self, host: str, port: int):
        self.host = host
        self.port = port

    async def open(self) -> None:
        """Connect, if the transport has connections. Raises when nobody listens."""

    async def close(self) -> None:
        """Leave at once, also while a call is under way."""

    async def infer(
        self, model: str, inputs: Arrays, *, version: str = "", outputs: tuple[str, ...] = ()
    ) -> Arrays:
        """The answer to one request; `outputs` are those that are wanted, all with an empty tuple."""
        raise NotImplementedError(f"{type(self).__name__} has no infer")

    def stream(self, model: str, inputs: Arrays) -> AsyncIterator[Arrays]:
        """All answers to one request. Values count here, not shapes: a stream may be text."""
        raise NotImplementedError(f"{type(self).__name__} has no stream")

    async def too_large(self) -> None:
        """Send `echo` a request that is larger than the options of the test class allow."""
        raise NotImplementedError(f"{type(self).__name__} has no too_large")

    async def live(self) -> bool:
        """Whether the server says that it is live."""
        raise NotImplementedError(f"{type(self).__name__} has no live")

    async def ready(self) -> bool:
        """Whether the server says that it is ready; False while it starts or ends."""
        raise NotImplementedError(f"{type(self).__name__} has no ready")

    async def model_ready(self, model: str) -> bool:
        """Whether a model is ready; False, or a CoreError, for one that there is not."""
        raise NotImplementedError(f"{type(self).__name__} has no model_ready")

    async def metadata(self) -> dict[str, Any]:
        """Of the server: at least `name` and `version`."""
        raise NotImplementedError(f"{type(self).__name__} has no metadata")

    async def model_metadata(self, model: str) -> dict[str, Any]:
        """Of a model: `name`, and `inputs` and `outputs`, lists of dicts with name, datatype and shape."""
        raise NotImplementedError(f"{type(self).__name__} has no model_metadata")
