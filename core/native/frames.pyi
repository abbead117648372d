import socket
from collections.abc import Sequence

from core.tensor import Buffer

def message(kind: int, number: int, released: Sequence[int], parts: list[Buffer]) -> bytes:
    """Return the bytes of a message.

    kind      0 to 255
    number    0 to 2**64 - 1, like each of `released`
    parts     contiguous buffers or arrays that form the content, in this order
    Raise ValueError from 4 GiB or 65536 numbers on; OverflowError for a number out of range.
    """

class Frame:
    """One received message."""

    kind: int
    number: int
    released: tuple[int, ...]
    content: bytes

    def __init__(
        self, kind: int, number: int, released: tuple[int, ...], content: bytes
    ) -> None: ...

class Reader:
    """Reads frames from a socket. Not thread-safe: one thread at a time.

    most   most bytes of one message
    Do not close the socket before the last call.
    """

    def __init__(self, sock: socket.socket, most: int) -> None: ...
    def receive(self) -> bool:
        """Receive once. Return False if the other side has closed the connection.

        A blocking socket waits without the GIL; another raises BlockingIOError. Other failures raise OSError.
        """

    def next(self) -> Frame | None:
        """Return the next complete message; None if there is none. Raise ValueError for an invalid header."""
