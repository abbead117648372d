"""Errors for callers: CoreError with a kind. Each frontend maps kinds to its own status codes in one table.

The kinds up to 7 are those of Triton's TRITONSERVER_Error_Code, so a model's `TritonError` keeps its code.
"""

from __future__ import annotations

import enum
from functools import partial


class Kind(enum.Enum):
    """Category of an error."""

    UNKNOWN = 0
    INTERNAL = 1
    NOT_FOUND = 2
    INVALID = 3
    UNAVAILABLE = 4
    UNSUPPORTED = 5
    ALREADY_EXISTS = 6
    CANCELLED = 7
    UNAUTHENTICATED = 8
    FORBIDDEN = 9
    EXHAUSTED = 10
    DEADLINE_EXCEEDED = 11

    @property
    def title(self) -> str:
        """Return the kind in the form of logs and of the repository index."""
        if self is Kind.INVALID:
            return "Invalid argument"
        return self.name.capitalize().replace("_", " ")


class CoreError(Exception):
    """An error with a kind and a text for the caller.

    The text names the thing, what was found, what was expected and what to do next.
    """

    def __init__(self, kind: Kind, message: str):
        super().__init__(message)
        self.kind = kind
        self.message = message

    def __repr__(self) -> str:
        return f"CoreError({self.kind.name}, {self.message!r})"


class Fatal(CoreError):
    """Error of a ModelInstance that cannot serve any more: the batch fails, the instance leaves service."""

    def __init__(self, message: str):
        super().__init__(Kind.INTERNAL, message)


class DeadlineExceeded(CoreError):
    """Error of a request whose deadline has passed, or would pass before the response."""

    def __init__(self, message: str = "Deadline Exceeded") -> None:
        super().__init__(Kind.DEADLINE_EXCEEDED, message)


class Unauthenticated(CoreError):
    """Error of a caller that could not be identified.

    shown   True if the caller sent credentials, which are invalid; False if it sent none
    """

    def __init__(self, message: str, *, shown: bool):
        super().__init__(Kind.UNAUTHENTICATED, message)
        self.shown = shown


class Exhausted(CoreError):
    """Error of a caller that has reached a limit. It may retry after `retry_after_s` seconds."""

    def __init__(self, message: str, retry_after_s: float):
        super().__init__(Kind.EXHAUSTED, message)
        self.retry_after_s = retry_after_s


class MemoryExhausted(Exhausted):
    """Error of a request that would exceed the memory limit of all connections (core.system.account)."""

    def __init__(self, message: str):
        super().__init__(message, retry_after_s=1.0)


class Loading(CoreError):
    """UNAVAILABLE error of a request to a model that is being loaded. A later request may succeed."""

    def __init__(self, message: str):
        super().__init__(Kind.UNAVAILABLE, f"{message}; ask again later")


# Each returns the error of its kind with a message.
invalid = partial(CoreError, Kind.INVALID)
not_found = partial(CoreError, Kind.NOT_FOUND)
unavailable = partial(CoreError, Kind.UNAVAILABLE)
unsupported = partial(CoreError, Kind.UNSUPPORTED)
forbidden = partial(CoreError, Kind.FORBIDDEN)
internal = partial(CoreError, Kind.INTERNAL)
already_exists = partial(CoreError, Kind.ALREADY_EXISTS)


def cancelled(message: str = "request was cancelled") -> CoreError:
    return CoreError(Kind.CANCELLED, message)
