"""Who tells the server about segments: a client by their names, a socket by their descriptors."""

from __future__ import annotations

import json
import os
import socket
import threading
from typing import Any

from core.client.segment import Segment, named_segment, sealed_segment

_LONGEST = 4096  # bytes of a message


class SharedMemoryError(RuntimeError):
    """The server does not take the memory; the text is what it says."""


class ByName:
    """Segments in /dev/shm, registered with tritonclient's calls.

    client       of tritonclient, over HTTP or gRPC
    mode         permissions of the files
    keep_names   whether a file keeps its name after it has been registered
    """

    def __init__(self, client: Any, mode: int, keep_names: bool):
        self._client = client
        self._mode = mode
        self._keep_names = keep_names

    def make(self, byte_size: int) -> Segment:
        """A segment that is not registered. Raises OSError."""
        return named_segment(byte_size, self._mode)

    def register(self, segment: Segment) -> Any:
        """Register it; what the client's call returns, for asyncio to be awaited. It raises its errors."""
        return self._client.register_system_shared_memory(
            segment.name, segment.key, segment.byte_size
        )

    def registered(self, segment: Segment) -> None:
        """The server has mapped it: nobody needs its name any more."""
        if not self._keep_names:
            segment.unlink()

    def unregister(self, segment: Segment) -> Any:
        """As `register`."""
        return self._client.unregister_system_shared_memory(segment.name)

    def close(self) -> None:
        """The client is its owner's."""

    forget = close


class BySocket:
    """Segments without names, whose descriptors go over a Unix domain socket. Any thread.

    The server forgets them when the connection closes, however this process ends.

    path   as --shared-memory-socket of the server says
    """

    def __init__(self, path: str):
        """Raises OSError if nobody listens there or this user may not connect."""
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = threading.Lock()
        try:
            self._socket.connect(path.removeprefix("unix:"))
        except OSError:
            self._socket.close()
            raise

    def make(self, byte_size: int) -> Segment:
        """A segment that is not registered. Raises OSError."""
        return sealed_segment(byte_size)

    def register(self, segment: Segment) -> None:
        """Raises SharedMemoryError, and OSError if the server has gone."""
        answer = self._ask({"register": segment.byte_size}, segment.file)
        segment.name = answer["name"]
        os.close(segment.file)  # it is mapped here and there
        segment.file = -1

    def registered(self, segment: Segment) -> None:
        """There is no name to take away."""

    def unregister(self, segment: Segment) -> None:
        """Raises as `register`."""
        self._ask({"unregister": segment.name})

    def close(self) -> None:
        """The server forgets all segments."""
        self._socket.close()

    # In a process that was forked: the connection must not live longer than its owner.
    forget = close

    def _ask(self, question: dict[str, Any], *files: int) -> dict[str, Any]:
        with self._lock:
            try:
                socket.send_fds(self._socket, [json.dumps(question).encode()], files)
                data = self._socket.recv(_LONGEST)
            except BaseException:  # such as Ctrl-C: the next question would get this one's answer
                self._socket.close()
                raise
        if not data:
            raise ConnectionResetError("the server has closed the connection for shared memory")
        answer: dict[str, Any] = json.loads(data)
        if "error" in answer:
            raise SharedMemoryError(answer["error"])
        return answer
