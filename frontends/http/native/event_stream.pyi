"""The events of a stream on their way to the client. All classes: event loop only."""

import asyncio
from collections.abc import Callable
from typing import Any

from core.backlog import Backlog
from core.errors import CoreError
from core.response import InferenceResponse, ReplyListener

class PartWriter:
    """Writes small parts of a body to the transport of a connection, past aiohttp's coroutines.

    Parts that come within 2 ms after a write share the next one, at the end of this time.

    protocol   aiohttp's; its `_paused` says whether the client is behind
    writer     aiohttp's writer of the response, whose head is sent already
    chunked    whether the body is in chunks
    busy       True while another writer sends a part: parts then wait
    """

    busy: bool

    def __init__(
        self, transport: asyncio.Transport, protocol: Any, writer: Any, chunked: bool
    ) -> None: ...
    def flush(self) -> None:
        """Write the parts that wait for the next write."""

    def close(self) -> None:
        """Drop the parts that wait for the next write."""

class EventQueue:
    """The parts of one body. A part is written at once if a writer is attached and the client keeps up.

    Other parts wait until `take` returns them. A part is bytes, or any object that its consumer turns into
    bytes later.

    backlog   counts the parts that wait
    ended     whether no more parts come
    """

    ended: bool

    def __init__(self, backlog: Backlog) -> None: ...
    def attach(self, writer: PartWriter) -> None:
        """Write later parts with `writer` where possible."""

    def add(self, part: Any, size: int) -> None:
        """Add a part of about `size` bytes. Do nothing after the end.

        Do nothing for b"" either if a writer is attached and no part waits; an object of size 0 is added.
        """

    def end(self) -> None:
        """No more parts come. Parts that wait can still be taken."""

    def drop(self) -> None:
        """Drop the parts that wait. The backlog still counts them: close it."""

    async def wait(self) -> None:
        """Wait until a part waits, or no more come."""

    async def take(self) -> Any:
        """Wait for parts and return the first; None at the end. Parts of bytes are joined, up to 64 KiB."""

class TextEvents(ReplyListener):
    """Listener of a Reply that makes an event of each response with one text. Others do the rest.

    queue            gets the events
    others           takes each item that is no such response, and all items before `begin`
    ignores_finish   whether an output `finish_reason` with the value "None" adds nothing to the event

    A text that is not complete UTF-8 goes to `others`, and so do all items after it.
    """

    def __init__(
        self,
        queue: EventQueue,
        others: Callable[[InferenceResponse | CoreError | None, bool], None],
        ignores_finish: bool,
    ) -> None: ...
    def begin(self, output: str, before: bytes, behind: bytes) -> None:
        """Make events from now on: the text as a JSON string between `before` and `behind`.

        output   name of the output with the text: one BYTES element
        """
