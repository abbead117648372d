"""FrontendClient: a client that calls a frontend over the frontend's own transport."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from core_testing.example import Arrays

CAPABILITIES = {
    "stream": "several answers to one request; needs FrontendClient.stream",
    "cancel": "a client that leaves before the answer cancels its request",
    "backpressure": "a model waits for a client that does not read; needs stream",
    "limits": "a bound on the bytes of a request; needs too_large, and options of the test class",
    "metadata": "the server and its models are described; needs metadata and model_metadata",
}


class FrontendClient:
    """One client. The kit calls every method on the event loop of the test; `open` first, `close` last.

    host, port   of the frontend

    Raise core.errors.CoreError for an error that the frontend sends, with its message and the kind that the
    transport's status means. Other failures (no connection, a reset) may raise any other exception. A call
    that is cancelled must cancel its request with the means of the transport.
    """

    def __init__(self, host: str, port: int):
        self.host = host
        self.port = port

    async def open(self) -> None:
        """Connect, if the transport has connections. Raises if the connection is refused."""

    async def close(self) -> None:
        """Close the connection at once, even during a call."""

    async def infer(
        self, model: str, inputs: Arrays, *, version: str = "", outputs: tuple[str, ...] = ()
    ) -> Arrays:
        """Return the outputs of one request.

        version   model version; "" for the version that the server chooses
        outputs   names of the wanted outputs; an empty tuple for all
        """
        raise NotImplementedError(f"{type(self).__name__} has no infer")

    def stream(self, model: str, inputs: Arrays) -> AsyncIterator[Arrays]:
        """Yield all answers to one request. The tests compare values, not shapes: a stream may be text."""
        raise NotImplementedError(f"{type(self).__name__} has no stream")

    async def too_large(self) -> None:
        """Send the model `echo` a request that is larger than the `options` of the test class allow."""
        raise NotImplementedError(f"{type(self).__name__} has no too_large")

    async def live(self) -> bool:
        """Return whether the server reports that it is live."""
        raise NotImplementedError(f"{type(self).__name__} has no live")

    async def ready(self) -> bool:
        """Return whether the server reports that it is ready; False while it starts or stops."""
        raise NotImplementedError(f"{type(self).__name__} has no ready")

    async def model_ready(self, model: str) -> bool:
        """Return whether a model is ready. For an unknown model, return False or raise CoreError."""
        raise NotImplementedError(f"{type(self).__name__} has no model_ready")

    async def metadata(self) -> dict[str, Any]:
        """Return the metadata of the server: at least `name` and `version`."""
        raise NotImplementedError(f"{type(self).__name__} has no metadata")

    async def model_metadata(self, model: str) -> dict[str, Any]:
        """Return the metadata of a model.

        The keys are `name`, `inputs` and `outputs`. The last two are lists of dicts with name, datatype and
        shape.
        """
        raise NotImplementedError(f"{type(self).__name__} has no model_metadata")
