"""Errors for callers: CoreError with a kind. Each frontend maps kinds to its own status codes in one table.

The kinds up to 7 are those of Triton's TRITONSERVER_Error_Code, so a model's `TritonError` keeps its code.
"""

from __future__ import annotations

import contextlib
import copyreg
import enum
import os
import re
import sys
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

_NOT_AUTHORS = sys.stdlib_module_names | {"core", "frontends", "pluggy"}
_MOST_NAMES = 500  # of an object, in a search for the nearest


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

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and unpickled errors are made without __init__: subclasses have other arguments."""
        state = {**vars(self), "args": self.args}
        return copyreg.__newobj__, (type(self),), state  # type: ignore[attr-defined]


class Fatal(CoreError):
    """Error of a ModelInstance that cannot serve any more: the batch fails, the instance leaves service."""

    def __init__(self, message: str):
        super().__init__(Kind.INTERNAL, message)


class DeadlineExceeded(CoreError):
    """Error of a request whose deadline has passed, or would pass before the response."""

    def __init__(self, message: str = "Deadline Exceeded") -> None:
        super().__init__(Kind.DEADLINE_EXCEEDED, message)


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


class AtRest(Exception):
    """Raised by core_around_load to leave a version unloaded, with the reason "unloaded: <text>"."""


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


class AuthorError(CoreError):
    """The error for an exception of a backend's own code, its `__cause__`; the text has file and line."""


def call_author(backend: str, step: str, function: Callable[..., T], *args: Any) -> T:
    """Call a backend's own code. Raises AuthorError for an exception that is no CoreError.

    step   the name of the call in core.backend, such as "load"
    """
    try:
        return function(*args)
    except CoreError:
        raise
    except Exception as error:
        where = f"backend '{backend}', " if backend else ""
        text = f"{where}{step}(){raised_at(error)}: {described(error)}"
        raise AuthorError(Kind.INTERNAL, text) from error


def raised_at(error: BaseException) -> str:
    """Return " at FILE:LINE" of an exception, "" if only core, frontends, pluggy and Python were running.

    That is the innermost line of the outermost package that is not one of theirs: a framework below it only
    says what its author passed. FILE begins with the package.
    """
    package, found = "", ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        top = str(frame.f_globals.get("__name__")).partition(".")[0]
        if "__tracebackhide__" in frame.f_code.co_varnames:  # of a test, as pytest marks it
            continue
        if top == package or (not package and top not in _NOT_AUTHORS):
            package, parts = top, Path(frame.f_code.co_filename).parts
            start = max((i for i, part in enumerate(parts) if part == package), default=-1)
            found = f" at {'/'.join(parts[start:])}:{line}"
    return found


def described(error: BaseException) -> str:
    """Return type and text of an exception, a name that may be meant; with CORE_TRACEBACKS=1 a traceback."""
    import difflib  # slow to import, and only errors need it

    text, near = f"{type(error).__name__}: {error}", []
    if isinstance(error, AttributeError) and error.name:
        with contextlib.suppress(Exception):  # any object of the author
            near = difflib.get_close_matches(error.name, dir(error.obj)[:_MOST_NAMES], 1)
    elif label := re.fullmatch(r'unknown enum label "(?!TYPE_)(\w+)"', str(error)):  # of protobuf
        near = [f"TYPE_{label[1]}"]
    trace = traceback.format_exception(error) if os.environ.get("CORE_TRACEBACKS") == "1" else []
    return "\n".join([f"{text}; did you mean '{near[0]}'?" if near else text, *trace]).rstrip()


def reason_of(error: Exception) -> str:
    """Return the text of an error in the form of Triton's index and logs: kind, colon, text."""
    if not isinstance(error, CoreError):
        error = internal(described(error))
    return f"{error.kind.title}: {error.message}"
