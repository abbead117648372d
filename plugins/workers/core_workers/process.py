"""WorkerProcess: the supervisor's side of one worker process, from its start to its exit status."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from typing import Any

from core_workers.channel import Channel, Message, open_channel

# The supervisor's sys.path replaces the interpreter's own: with -c that begins with the current folder, which
# may contain another `core`.
_PROGRAM = (
    "import sys; sys.path[:] = {path!r}; from core_workers.worker import work; "
    "sys.exit(work({settings!r}))"
)


@dataclass(frozen=True)
class Settings:
    """The settings of one worker, on its command line before the arguments of the server.

    number        number of the worker, from 1 on
    operation     operation in which it loads the models of the start
    replacement   True if it replaces a worker that has ended; it then waits until it is admitted
    ports         name of the option → port of all workers
    listening     address where the supervisor listens for all workers → file descriptors
    tables        name of a table that all workers share → its file descriptor
    channel       file descriptor of its end of the channel, -1 before `start_worker` makes it
    """

    number: int
    operation: int
    replacement: bool
    ports: Mapping[str, int]
    listening: Mapping[str, list[int]]
    tables: Mapping[str, int]
    channel: int = -1

    def text(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def of(cls, text: str) -> Settings:
        return cls(**json.loads(text))


class WorkerProcess:
    """A worker process, made by `start_worker`. Not thread-safe: use it on the supervisor's event loop only.

    number     number of the worker
    replacing  True while it replaces a worker that has ended and does not serve yet
    started    future: "" when its models are loaded; the reason if it cannot serve, or ends before
    opened     set when the ports of a replacement are open
    ended      set when `look` finds that the process has ended
    status     exit status, negative for a signal; None until `look` finds that the process has ended
    """

    def __init__(
        self, number: int, popen: subprocess.Popen[bytes], channel: Channel, replacing: bool
    ):
        self.number = number
        self.replacing = replacing
        self.pid = popen.pid
        self.started: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.opened = asyncio.Event()
        self.ended = asyncio.Event()
        self._popen = popen
        self._channel = channel
        self._listener: asyncio.Task[None] | None = None

    @property
    def status(self) -> int | None:
        return self._popen.returncode

    def send(self, head: dict[str, Any], body: bytes = b"") -> None:
        """Send the worker a message; drop it if the channel is closed."""
        self._channel.send(head, body)

    def listen(self, received: Callable[[int, Message], None]) -> None:
        """Begin to read the worker's messages: pass each to `received` with the worker's number.

        Those about its start are not passed: they settle `started`, or set `opened`.
        """
        self._listener = asyncio.get_running_loop().create_task(self._listen(received))

    async def _listen(self, received: Callable[[int, Message], None]) -> None:
        while (message := await self._channel.receive()) is not None:
            kind = message.head["kind"]
            if kind == "started":
                self._settle("")
            elif kind == "failed":
                self._settle(message.head["reason"])
            elif kind == "opened":
                self.opened.set()
            else:
                received(self.number, message)

    def look(self) -> bool:
        """Return whether the process has ended.

        The first call that finds the end sets `ended`, settles `started` if it is open, closes the channel.
        """
        if self._popen.poll() is None:
            return False
        if not self.ended.is_set():
            self.ended.set()
            self._settle(f"Internal - worker {self.number} {self.how_it_ended()}")
            self._channel.close()
        return True

    def how_it_ended(self) -> str:
        """Return the end of the process in words: "was ended by SIGKILL" or "ended with status 3"."""
        status = self.status or 0
        if status >= 0:
            return f"ended with status {status}"
        try:
            return f"was ended by {signal.Signals(-status).name}"
        except ValueError:  # a real-time signal
            return f"was ended by signal {-status}"

    def read_again(self) -> None:
        """Send SIGHUP unless the process has ended: the worker reads certificates, tokens and keys again."""
        if self._popen.poll() is None:
            self._popen.send_signal(signal.SIGHUP)

    def kill(self) -> None:
        """Kill the process by SIGKILL, unless it has ended."""
        if self._popen.poll() is None:
            self._popen.kill()

    def _settle(self, reason: str) -> None:
        if not self.started.done():
            self.started.set_result(reason)


async def start_worker(arguments: Sequence[str], settings: Settings) -> WorkerProcess:
    """Start a worker process, and return the supervisor's side of it. Raises OSError if it cannot start.

    arguments   the arguments of the server's command line, without the program
    settings    of the worker; their `channel` is replaced by the end that this function makes
    """
    ours, theirs = socket.socketpair()
    with theirs:
        settings = replace(settings, channel=theirs.fileno())
        program = _PROGRAM.format(path=sys.path, settings=settings.text())
        # ^C reaches every process of a terminal: block SIGINT until the worker ignores it (worker.py), and
        # SIGHUP until the worker has its handler.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, signal.SIGHUP])
        try:
            popen = subprocess.Popen(
                [sys.executable, "-c", program, *arguments],
                pass_fds=[
                    theirs.fileno(),
                    *settings.tables.values(),
                    *chain.from_iterable(settings.listening.values()),
                ],
                stdin=subprocess.DEVNULL,
            )
        except OSError:
            ours.close()
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
    channel = await open_channel(ours)
    return WorkerProcess(settings.number, popen, channel, settings.replacement)
