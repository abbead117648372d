"""Register segments with the server: by name through a client, or by descriptor over a socket."""

from __future__ import annotations

import json
import os
import socket
import threading
from typing import Any

from core_client.segment import Segment, named_segment, sealed_segment

_LONGEST = 4096  # bytes of a message


class SharedMemoryError(RuntimeError):
    """The server refuses the memory; the text is that of the server."""


class ByName:
    """Register segments of /dev/shm with tritonclient's calls.

    client       of tritonclient, over HTTP or gRPC
    mode         permissions of the files
    keep_names   whether a file keeps its name after it has been registered
    """

    def __init__(self, client: Any, mode: int, keep_names: bool):
        self._client = client
        self._mode = mode
        self._keep_names = keep_names

    def make(self, byte_size: int) -> Segment:
        """Make a segment that is not registered yet. Raises OSError."""
        return named_segment(byte_size, self._mode)

    def register(self, segment: Segment) -> Any:
        """Return the result of the client's call, awaitable with asyncio. Raises the client's errors."""
        return self._client.register_system_shared_memory(
            segment.name, segment.key, segment.byte_size
        )

    def registered(self, segment: Segment) -> None:
        """Remove the name, except with `keep_names`: the server has mapped the segment."""
        if not self._keep_names:
            segment.unlink()

    def unregister(self, segment: Segment) -> Any:
        """Return and raise as `register` does."""
        return self._client.unregister_system_shared_memory(segment.name)

    def close(self) -> None:
        """Do nothing: the caller owns the client."""

    forget = close


class BySocket:
    """Send descriptors of unnamed segments over a Unix domain socket. Any thread.

    The server drops them when the connection closes, however this process ends.

    path   value of the server's --shared-memory-socket
    """

    def __init__(self, path: str):
        """Connect. Raises OSError if no server listens there or this user may not connect."""
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = threading.Lock()
        try:
            self._socket.connect(path.removeprefix("unix:"))
        except OSError:
            self._socket.close()
            raise

    def make(self, byte_size: int) -> Segment:
        """Make a segment that is not registered yet. Raises OSError."""
        return sealed_segment(byte_size)

    def register(self, segment: Segment) -> None:
        """Register; set the segment's name to the server's, and close its descriptor.

        Raises SharedMemoryError, and OSError if the server has ended.
        """
        answer = self._ask({"register": segment.byte_size}, segment.file)
        segment.name = answer["name"]
        os.close(segment.file)  # client and server have mapped it
        segment.file = -1

    def registered(self, segment: Segment) -> None:
        """Do nothing: there is no name to remove."""

    def unregister(self, segment: Segment) -> None:
        """Unregister. Raises the errors of `register`."""
        self._ask({"unregister": segment.name})

    def close(self) -> None:
        """Close the connection; the server drops all segments."""
        self._socket.close()

    # A forked process closes its copy too: the connection must not outlive the process that opened it.
    forget = close

    def _ask(self, question: dict[str, Any], *files: int) -> dict[str, Any]:
        with self._lock:
            try:
                socket.send_fds(self._socket, [json.dumps(question).encode()], files)
                data = self._socket.recv(_LONGEST)
            except BaseException:  # such as Ctrl-C: the next question would receive this answer
                self._socket.close()
                raise
        if not data:
            raise ConnectionResetError("the server has closed the connection for shared memory")
        answer: dict[str, Any] = json.loads(data)
        if "error" in answer:
            raise SharedMemoryError(answer["error"])
        return answer
