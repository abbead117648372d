"""ProcessEvents: what a process prints, as events of a response. Other distributions use it, too.

document ─► stdin of a process ─► lines "<event> <JSON>" ─► [ProcessEvents] ─► events
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from typing import Any

import orjson

from frontends.http.message import EVENT_HEADERS, HttpResponse, encoded_event

_LONGEST_LINE = 1 << 24
_MOST_COMPLAINT = 2000  # characters


class ProcessEvents:
    """The rest of a response (frontends.http.message.Parts). Event loop only.

    The process takes no time of the event loop, and ends with its client.

    module    that the process runs
    document  that it reads from its standard input: a token in its arguments would be seen by other users
    last      names of the events of which one comes at the end; without it, the process has failed
    end_s     seconds to clean up after SIGINT, before it is killed
    runs      whether the process runs, or will
    """

    def __init__(self, module: str, document: Any, last: Sequence[str], end_s: float):
        self._module, self._document, self._last, self._end_s = module, document, last, end_s
        self._process: asyncio.subprocess.Process | None = None
        self.runs = True

    def response(self) -> HttpResponse:
        """Return the response with these events."""
        return HttpResponse(200, EVENT_HEADERS, b"", self)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pipe = asyncio.subprocess.PIPE
        self._process = process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", self._module),
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            limit=_LONGEST_LINE,
        )
        assert process.stdin and process.stdout and process.stderr
        if not self.runs:  # the client has left while the process was started
            process.kill()
            return
        process.stdin.write(orjson.dumps(self._document))
        process.stdin.close()
        complaint = asyncio.create_task(process.stderr.read())
        name = ""
        try:
            async for line in process.stdout:
                name, _, data = line.decode().rstrip("\n").partition(" ")
                yield encoded_event(name, data.encode())
            await process.wait()
            self.runs = False  # before the client sees the end, so that it may begin anew
            if name not in self._last:
                text = (await complaint).decode(errors="replace").strip()[-_MOST_COMPLAINT:]
                error = text or "the process of the load generator was ended"
                yield encoded_event("failed", orjson.dumps({"error": error}))
        finally:
            complaint.cancel()

    async def aclose(self) -> None:
        """End the process, and wait for it."""
        process = self._process
        if process is not None and process.returncode is None:
            self.end()
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(process.wait(), self._end_s)
            if process.returncode is None:
                process.kill()
                await process.wait()
        self.runs = False

    def end(self) -> None:
        """Let the process end: the client has left, or the server stops."""
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGINT)


def tell(event: str, value: Any) -> None:
    """Print an event in the process. A reader that has gone ends it."""
    sys.stdout.buffer.write(b"%b %b\n" % (event.encode(), orjson.dumps(value)))
    sys.stdout.buffer.flush()
