"""Check arguments as Triton's own classes do: text may be UTF-8 bytes (an element of a BYTES tensor may name
a model), whole numbers may be numpy's."""

from __future__ import annotations

from typing import Any, SupportsIndex

from backend_python.strings import speakable


def text(where: str, value: Any) -> str:
    """Return a str, bytes or bytearray as str. Raises TypeError, which begins with `where`, for others."""
    if type(value) is str:
        return value
    if isinstance(value, str):
        return str.__str__(value)  # a subclass, such as numpy's
    if isinstance(value, (bytes, bytearray)):
        try:
            return value.decode()
        except UnicodeDecodeError as error:
            raise TypeError(f"{where} is no UTF-8: {error}") from None
    raise TypeError(f"{where} must not have a {type(value)}")


def number(where: str, value: Any, lowest: int, below: int) -> int:
    """Return a whole number of Python or numpy. Raises TypeError unless lowest <= value < below."""
    if isinstance(value, SupportsIndex) and lowest <= (found := value.__index__()) < below:
        return found
    raise TypeError(f"{where} must be from {lowest} to {below - 1}, found {value!r}")


def public_text(where: str, value: Any) -> str:
    """Return text that the server shows to clients. Raises TypeError also if UTF-8 cannot encode it."""
    found = text(where, value)
    if speakable(found) != found:
        raise TypeError(
            f"{where} holds half of a surrogate pair, which UTF-8 cannot carry: {found!a}"
        )
    return found
