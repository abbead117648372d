from core.tensor import Buffer

def gather(parts: list[Buffer], out: Buffer, offset: int = 0, alignment: int = 1) -> int:
    """Copy `parts` one after another into `out`, from byte `offset` on.

    parts   contiguous buffers of any length; the caller owns them
    out     a writable contiguous buffer; the caller owns it
    alignment   each part begins at a multiple of it, counted from the offset; what lies between them
            is not written
    Returns the number of bytes from the offset to the end of the last part. Releases the GIL for large
    copies.
    Raises ValueError if they do not fit; a buffer that is not contiguous raises what its owner
    raises (numpy ValueError, memoryview BufferError).
    """

def joined(parts: list[Buffer]) -> bytes:
    """Return `parts` one after another.

    parts   contiguous buffers of any length; the caller owns them
    Releases the GIL for large copies, which `bytes` and `b"".join` do for no buffer but bytes.
    """
