"""Arguments as Triton's own classes take them: text may come as bytes of UTF-8 (so an element of a BYTES
tensor may name a model), whole numbers as numpy's."""

from __future__ import annotations

from typing import Any, SupportsIndex

from backend_python.strings import speakable


def text(where: str, value: Any) -> str:
    """Text that came as str, bytes or bytearray. TypeError, which begins with `where`, for all else."""
    if type(value) is str:
        return value
    if isinstance(value, str):
        return str.__str__(value)  # of numpy, for example
    if isinstance(value, (bytes, bytearray)):
        try:
            return value.decode()
        except UnicodeDecodeError as error:
            raise TypeError(f"{where} is no UTF-8: {error}") from None
    raise TypeError(f"{where} must not have a {type(value)}")


def number(where: str, value: Any, lowest: int, below: int) -> int:
    """A whole number from `lowest` to before `below`, of Python or numpy. TypeError, as `text`."""
    if isinstance(value, SupportsIndex) and lowest <= (found := value.__index__()) < below:
        return found
    raise TypeError(f"{where} must be from {lowest} to {below - 1}, found {value!r}")


def public_text(where: str, value: Any) -> str:
    """The same for what the server shows to others: TypeError also for text that UTF-8 cannot carry."""
    found = text(where, value)
    if speakable(found) != found:
        raise TypeError(
            f"{where} holds half of a surrogate pair, which UTF-8 cannot carry: {found!a}"
        )
    return found
