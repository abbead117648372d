"""Content-Encoding of requests, Accept-Encoding of responses: gzip and deflate (zlib's container)."""

from __future__ import annotations

import zlib
from collections.abc import Callable

from core.errors import invalid
from core.tensor import Buffer

GZIP = "gzip"
DEFLATE = "deflate"
IDENTITY = "identity"
OFFERED = "gzip, deflate"

# Above this many bytes (un)packing takes long enough to be done on another thread; zlib lets the
# interpreter go meanwhile.
WORTH_A_THREAD = 64 * 1024

_WINDOW = {GZIP: zlib.MAX_WBITS | 16, DEFLATE: zlib.MAX_WBITS}
_EITHER = zlib.MAX_WBITS | 32  # the header of the data says which
_PIECE = 256 * 1024


def known(encoding: str | None) -> bool:
    """Whether a request may have that Content-Encoding."""
    return encoding is None or encoding == IDENTITY or encoding in _WINDOW


def decompressor(encoding: str | None, size: int, most: int) -> Callable[[Buffer], Buffer] | None:
    """What makes a body of `size` bytes plain; None if it is plain already.

    encoding   the header Content-Encoding; None if there is none
    most       bytes of the result; no more is ever made
    The function raises CoreError(INVALID) for data that is damaged or too large. Raises
    CoreError(INVALID) if there is nothing to unpack.
    """
    if encoding is None or encoding == IDENTITY:
        return None
    if not size:
        raise invalid("nothing to be decompressed")
    return lambda data: _decompress(data, encoding, most)


def _decompress(data: Buffer, encoding: str, most: int) -> Buffer:
    """Any thread. What follows the end of the packed data is ignored, as Triton does."""
    plain = bytearray()
    try:
        _unpack(data, encoding, most, plain)
    except BaseException:
        plain.clear()  # the exception holds this frame, and may itself be held for a while
        raise
    return plain


def _unpack(data: Buffer, encoding: str, most: int, plain: bytearray) -> None:
    unpack = zlib.decompressobj(_EITHER)
    packed = memoryview(data)
    at = 0
    rest: Buffer = b""
    try:
        while not unpack.eof:
            if not rest:
                # In pieces: zlib copies what it leaves over each time.
                rest = packed[at : at + _PIECE]
                at += len(rest)
            # One byte more than allowed shows that there is more.
            piece = unpack.decompress(rest, min(_PIECE, most - len(plain) + 1))
            rest = unpack.unconsumed_tail
            plain += piece
            if len(plain) > most:
                raise invalid(
                    "Decompressed data size exceeds the maximum allowed value of "
                    f"{most} bytes. Use --http-max-input-size to increase the limit."
                )
            if not piece and not rest and at == len(packed) and not unpack.eof:
                raise invalid(f"failed to decompress the {encoding} request body: it ends early")
    except zlib.error as error:
        raise invalid(f"failed to decompress the {encoding} request body: {error}") from None


def accepted(header: str | None) -> str:
    """The encoding of a response: of gzip, deflate and identity the one with the highest weight.

    header   Accept-Encoding, None if there is none; the first of equal weights wins
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
    """`q=0.5`; 1 without a parameter, 0 for one that is no weight."""
    key, _, value = parameter.partition("=")
    if not key.strip():
        return 1.0
    try:
        return float(value) if key.strip().lower() == "q" else 0.0
    except ValueError:
        return 0.0


def compress(data: bytes, encoding: str) -> bytes:
    """`data`, packed. Any thread."""
    pack = zlib.compressobj(wbits=_WINDOW[encoding])
    return pack.compress(data) + pack.flush()
