"""Count requests from admission to their last answer; refuse them while the model drains."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from core.errors import CoreError, unavailable
from core.pipeline.admit import Admission, request_label
from core.request import InferenceRequest
from core.response import Reply

Handler = Callable[[InferenceRequest], Reply]


class Intake:
    """The door of one model version. Loop thread only.

    in_flight   accepted requests without their last answer, waiting or running
    draining    nothing more is let in
    """

    def __init__(self, loop: asyncio.AbstractEventLoop):
        self.in_flight = 0
        self.draining = False
        self._loop = loop
        self._drained: asyncio.Future[None] | None = None

    def enter(self) -> None:
        """A request is in; `ended` follows."""
        self.in_flight += 1

    def ended(self) -> None:
        """A request has got its last answer."""
        self.in_flight -= 1
        if not self.in_flight and self._drained is not None:
            self._drained.set_result(None)
            self._drained = None

    def close(self) -> None:
        """Let nothing more in."""
        self.draining = True

    async def drain(self) -> None:
        """Let nothing more in and wait for the last answer of what is in."""
        self.draining = True
        if self.in_flight:
            if self._drained is None:
                self._drained = self._loop.create_future()
            await asyncio.shield(self._drained)


class Stage:
    """A handler behind a door. For compiled ones: a call that makes no object."""

    def ask(self, request: InferenceRequest) -> Reply:
        """Take an admitted request. Raises CoreError for one that is refused at once."""
        raise NotImplementedError

    def __call__(self, request: InferenceRequest) -> Reply:
        return self.ask(request)


class Door:
    """The handler of one model version: admits and counts.

    signature   of the version

    `intake.ended` must be called once for each request that it lets in.
    """

    def __init__(self, intake: Intake, admission: Admission, inner: Handler):
        self.signature = admission.signature
        self._intake = intake
        self._admission = admission
        self._inner = inner
        self._stage = inner if isinstance(inner, Stage) else None

    def __call__(self, request: InferenceRequest) -> Reply:
        return self.ask(request)

    def ask(self, request: InferenceRequest) -> Reply:
        """Let a request in. Raises CoreError for what is refused at once."""
        if self._intake.draining:
            raise unavailable(
                f"{request_label(request)} Server is stopping, scheduler for model has stopped "
                "accepting new inference requests"
            )
        self._admission.check(request)
        self._intake.enter()
        try:
            if self._stage is not None:
                return self._stage.ask(request)
            return self._inner(request)
        except CoreError:
            self._intake.ended()
            raise
