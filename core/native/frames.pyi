import socket
from collections.abc import Sequence

from core.tensor import Buffer

def message(kind: int, number: int, released: Sequence[int], parts: list[Buffer]) -> bytes:
    """The bytes of a message.

    kind      0 to 255
    number    0 to 2**64 - 1, as each of `released`
    parts     contiguous buffers or arrays: its content, one behind the other
    Raises ValueError for 4 GiB or 65536 numbers and more; OverflowError for a number out of range.
    """

class Frame:
    """One message as it came."""

    kind: int
    number: int
    released: tuple[int, ...]
    content: bytes

    def __init__(
        self, kind: int, number: int, released: tuple[int, ...], content: bytes
    ) -> None: ...

class Reader:
    """Cuts what arrives on a socket into frames. One thread at a time.

    most   bytes of one message
    The socket must not be closed before the last call.
    """

    def __init__(self, sock: socket.socket, most: int) -> None: ...
    def receive(self) -> bool:
        """Receive once; False if the other side has closed.

        Waits without the GIL where the socket does; else BlockingIOError, as OSError for the rest.
        """

    def next(self) -> Frame | None:
        """The next whole message that has arrived; None if there is no more.

        ValueError for what is no header of a message.
        """
