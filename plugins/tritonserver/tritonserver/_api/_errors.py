"""The exceptions, and which of them stands for a CoreError.

CoreError ─► [raised_as] ─► NotFoundError, InvalidArgumentError, …
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from core.errors import CoreError, Kind


class TritonError(Exception):
    """An error of the server. `args` are its text and, if a response has brought it, that response.

    In another process it has its text only: a response is memory of this one.
    """

    __module__ = "tritonserver"

    def __str__(self) -> str:
        """Return the text alone."""
        return str(self.args[0]) if self.args else ""

    def __reduce__(self) -> tuple[type[TritonError], tuple[str]]:
        return type(self), (str(self),)


class UnknownError(TritonError):
    __module__ = "tritonserver"


class InternalError(TritonError):
    __module__ = "tritonserver"


class NotFoundError(TritonError):
    __module__ = "tritonserver"


class InvalidArgumentError(TritonError):
    __module__ = "tritonserver"


class UnavailableError(TritonError):
    __module__ = "tritonserver"


class UnsupportedError(TritonError):
    __module__ = "tritonserver"


class AlreadyExistsError(TritonError):
    __module__ = "tritonserver"


# Triton has no exception of their own for the kinds that are missing: they are UnknownError.
_TYPES: dict[Kind, type[TritonError]] = {
    Kind.INTERNAL: InternalError,
    Kind.NOT_FOUND: NotFoundError,
    Kind.INVALID: InvalidArgumentError,
    Kind.UNAVAILABLE: UnavailableError,
    Kind.UNSUPPORTED: UnsupportedError,
    Kind.ALREADY_EXISTS: AlreadyExistsError,
    Kind.EXHAUSTED: UnavailableError,
    Kind.DEADLINE_EXCEEDED: UnavailableError,
}


def triton_error(error: CoreError) -> TritonError:
    """Return the exception for an error of core, which is its `__cause__`."""
    found = _TYPES.get(error.kind, UnknownError)(error.message)
    found.__cause__ = error
    return found


@contextlib.contextmanager
def raised_as_triton() -> Iterator[None]:
    """Raise the exception of this module for a CoreError of the block."""
    try:
        yield
    except CoreError as error:
        raise triton_error(error) from error
