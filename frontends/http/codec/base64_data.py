"""Elements of tensors in base64 (`parameters.content_type` "base64")."""

from __future__ import annotations

import base64
import binascii

from core import dtypes
from core.native import strings
from core.tensor import Tensor


def decoded(text: bytes) -> bytes:
    """Return the bytes of an element; text that is not base64 is returned unchanged, as MLServer does."""
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return text


def encoded(tensor: Tensor) -> list[str]:
    """Return an output in base64: a text for each element of BYTES, else one of all bytes. Thread-safe."""
    if tensor.dtype is dtypes.BYTES:
        elements = strings.decode(tensor.raw, tensor.count)
        return [base64.b64encode(each).decode() for each in elements]
    return [base64.b64encode(tensor.raw).decode()]
