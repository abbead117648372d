"""Content-Encoding of requests, Accept-Encoding of responses: gzip and deflate (zlib's container)."""

from __future__ import annotations

import zlib
from collections.abc import Callable

from core.errors import invalid
from core.tensor import Buffer
from frontends.http.background import begin

GZIP = "gzip"
DEFLATE = "deflate"
IDENTITY = "identity"
OFFERED = "gzip, deflate"

# Up to this many bytes are packed and unpacked on the event loop. More takes milliseconds and runs on
# another thread: zlib releases the GIL.
AT_ONCE_BYTES = 64 * 1024

# The size of a body pays for its unpacked bytes: tensors and JSON shrink to a tenth or so of their size.
# Bytes beyond that are borrowed from the server's account.
FREE_RATIO = 16
FREE_BYTES = 1024 * 1024

_WINDOW = {GZIP: zlib.MAX_WBITS | 16, DEFLATE: zlib.MAX_WBITS}
_EITHER = zlib.MAX_WBITS | 32  # the header of the data says which
_PIECE = 256 * 1024


def known(encoding: str | None) -> bool:
    return encoding is None or encoding == IDENTITY or encoding in _WINDOW


class Unpacking:
    """A compressed body while it is unpacked.

    encoding   the header Content-Encoding, for errors; the data itself says whether it is gzip or deflate
    most       limit of the result in bytes; at most one byte more is ever made
    size       bytes unpacked so far
    plain      the unpacked body, once complete
    Data after the end of the packed data is ignored, as in Triton.
    """

    def __init__(self, data: Buffer, encoding: str, most: int):
        """Raise CoreError(INVALID) if there is nothing to unpack."""
        self._packed = memoryview(data)
        if not self._packed.nbytes:
            raise invalid("nothing to be decompressed")
        self._encoding = encoding
        self._most = most
        self._unpack = zlib.decompressobj(_EITHER)
        self._at = 0
        self._rest: Buffer = b""
        self._piece: bytes = b""  # unpacked, but above the bound
        # Pieces: one body that grows would be copied, and leave holes in the heap.
        self._pieces: list[bytes] = []
        self.size = 0
        self.plain = b""

    def at_once(self) -> bool:
        """Unpack at most AT_ONCE_BYTES; return whether that is the whole body. Raises what `go_on` raises."""
        return self.go_on(min(AT_ONCE_BYTES, self._most))

    async def rest(self, borrow: Callable[[int], None]) -> Buffer:
        """Unpack the rest on another thread; return the whole body. Call it from the event loop only.

        borrow   called with a number of bytes before they are made, if the packed bytes do not pay for them:
                 FREE_RATIO times the packed size and FREE_BYTES are free. It raises MemoryExhausted to refuse
        Raises what `borrow` and `go_on` raise.
        """
        most = self._most
        allowed = min(most, FREE_RATIO * self._packed.nbytes + FREE_BYTES)
        while not await begin(self.go_on, allowed):
            more = min(max(allowed // 8, _PIECE), most - allowed)
            borrow(more)
            allowed += more
        return self.plain

    def go_on(self, allowed: int) -> bool:
        """Unpack until there are `allowed` bytes; return whether that is the body. One thread at a time.

        Raises CoreError(INVALID) for data that is damaged or too large.
        """
        try:
            return self._go_on(allowed)
        except BaseException:
            self._pieces.clear()  # the exception holds this frame, and may itself live on
            raise

    def _go_on(self, allowed: int) -> bool:
        unpack, packed = self._unpack, self._packed
        self._keep(self._piece)
        self._piece = b""
        try:
            while not unpack.eof:
                if not self._rest:
                    # In pieces: zlib copies its unconsumed input each time.
                    self._rest = packed[self._at : self._at + _PIECE]
                    self._at += len(self._rest)
                # One byte more than allowed shows that there is more.
                piece = unpack.decompress(self._rest, min(_PIECE, allowed - self.size + 1))
                self._rest = unpack.unconsumed_tail
                if self.size + len(piece) > allowed:
                    self._piece = piece
                    if allowed >= self._most:
                        raise invalid(
                            "Decompressed data size exceeds the maximum allowed value of "
                            f"{self._most} bytes. Use --http-max-input-size to increase the limit."
                        )
                    return False
                self._keep(piece)
                if not piece and not self._rest and self._at == len(packed) and not unpack.eof:
                    raise invalid(
                        f"failed to decompress the {self._encoding} request body: it ends early"
                    )
        except zlib.error as error:
            raise invalid(
                f"failed to decompress the {self._encoding} request body: {error}"
            ) from None
        self.plain = b"".join(self._pieces)
        self._pieces.clear()
        return True

    def _keep(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self.size += len(piece)


def accepted(header: str | None) -> str:
    """Return the encoding of a response: of gzip, deflate and identity, the one with the highest weight.

    header   Accept-Encoding; the first of equal weights wins, `*` does not count. "identity" if it is None or
             gives none of the three a weight above 0
    """
    best, best_weight = IDENTITY, 0.0
    for part in (header or "").split(","):
        name, _, parameter = part.partition(";")
        name = name.strip().lower()
        weight = _weight(parameter)
        if (name in _WINDOW or name == IDENTITY) and weight > best_weight:
            best, best_weight = name, weight
    return best


def _weight(parameter: str) -> float:
    """Return the weight in a parameter such as `q=0.5`; 1 without a parameter, 0 for any other parameter."""
    key, _, value = parameter.partition("=")
    if not key.strip():
        return 1.0
    try:
        return float(value) if key.strip().lower() == "q" else 0.0
    except ValueError:
        return 0.0


def compress(data: bytes, encoding: str) -> bytes:
    """Return `data` compressed; `encoding` is GZIP or DEFLATE. Thread-safe."""
    pack = zlib.compressobj(wbits=_WINDOW[encoding])
    return pack.compress(data) + pack.flush()
