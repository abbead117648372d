"""Outcome: what a server has answered to a record that was sent again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from core_capture.records.record import Record


@dataclass(slots=True)
class Outcome:
    """The answer to one record.

    status        of HTTP, or the status code of gRPC; -1 without an answer
    fields        header fields of an HTTP response
    messages      the body of HTTP, or the messages of gRPC
    text          the message of gRPC's status, or why there is no answer
    duration_ns   until the end of the answer
    ended         whether the call was ended here, because its client had ended the recorded one
    """

    status: int
    fields: Sequence[tuple[str, str]] = ()
    messages: Sequence[bytes] = field(default_factory=list)
    text: str = ""
    duration_ns: int = 0
    ended: bool = False

    @property
    def answer(self) -> bytes:
        return b"".join(self.messages)


class Sender(Protocol):
    """Sends records to a server. One event loop only."""

    async def send(
        self, record: Record, speed: float, begun: Callable[[], None] | None = None
    ) -> Outcome:
        """Send a record and return the outcome; one without an answer has the status -1.

        speed   of the replay: times within the call are divided by it; infinite for no waiting
        begun   called when the request is on its way, and a later one does not overtake it; not called if
                it fails before
        """

    async def close(self) -> None:
        """Close the connections."""
