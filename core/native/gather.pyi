from core.tensor import Buffer

def gather(parts: list[Buffer], out: Buffer, offset: int = 0, alignment: int = 1) -> int:
    """Copy `parts` one after another into `out`, from byte `offset` on.

    parts   contiguous buffers of any length; the caller owns them
    out     a writable contiguous buffer; the caller owns it
    alignment   each part begins at a multiple of it, counted from the offset; gaps are not written
    Return the number of bytes from the offset to the end of the last part. Large copies release the GIL.
    Raise ValueError, before copying, if the parts do not fit or the alignment is below 1. A non-contiguous
    buffer raises the error of its owner (numpy: ValueError, memoryview: BufferError).
    """

def joined(parts: list[Buffer]) -> bytes:
    """Return a copy of `parts`, one after another, as one bytes object.

    parts   contiguous buffers of any length; the caller owns them
    Copies from 64 KiB release the GIL; `b"".join` does that only for parts that are `bytes`.
    """
