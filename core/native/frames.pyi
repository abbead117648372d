import socket
from collections.abc import Sequence

from core.tensor import Buffer

def message(kind: int, number: int, released: Sequence[int], parts: list[Buffer]) -> bytes:
    """Return a message as bytes: header, released numbers, content.

    kind      0 to 255
    number    0 to 2**64 - 1, like each of `released`
    parts     contiguous buffers or arrays; their bytes, in this order, are the content
    Raise ValueError from 4 GiB after the header, or 65536 released numbers, on; OverflowError for numbers out
    of range.
    """

class Frame:
    """One received message; the fields are those given to `message`, the content is a copy."""

    kind: int
    number: int
    released: tuple[int, ...]
    content: bytes

    def __init__(
        self, kind: int, number: int, released: tuple[int, ...], content: bytes
    ) -> None: ...

class Reader:
    """Receives bytes from a socket and splits them into frames. Not thread-safe: one thread at a time.

    most   most bytes of one message after its header
    Do not close the socket before the last call of `receive`.
    """

    def __init__(self, sock: socket.socket, most: int) -> None: ...
    def receive(self) -> bool:
        """Receive bytes once, for `next`. Return False if the other side has closed the connection.

        A blocking socket waits without the GIL; another raises BlockingIOError if there are no bytes. Other
        failures raise OSError.
        """

    def next(self) -> Frame | None:
        """Return the next message; None if it is incomplete. Raise ValueError if it is larger than `most`."""
