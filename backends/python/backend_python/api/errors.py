"""TritonError, which a response carries, and TritonModelException, which a model raises."""

from __future__ import annotations

import enum
from typing import ClassVar

from backend_python.api.arguments import text


class ErrorCode(enum.IntEnum):
    """The error codes; the server maps them to statuses of its protocols."""

    UNKNOWN = 0
    INTERNAL = 1
    NOT_FOUND = 2
    INVALID_ARG = 3
    UNAVAILABLE = 4
    UNSUPPORTED = 5
    ALREADY_EXISTS = 6
    CANCELLED = 7


class TritonError:
    """An error as the answer to one request.

    message   text that the client receives unchanged
    code      one of TritonError.UNKNOWN … TritonError.CANCELLED
    """

    __slots__ = ("_code", "_message")

    UNKNOWN: ClassVar = ErrorCode.UNKNOWN
    INTERNAL: ClassVar = ErrorCode.INTERNAL
    NOT_FOUND: ClassVar = ErrorCode.NOT_FOUND
    INVALID_ARG: ClassVar = ErrorCode.INVALID_ARG
    UNAVAILABLE: ClassVar = ErrorCode.UNAVAILABLE
    UNSUPPORTED: ClassVar = ErrorCode.UNSUPPORTED
    ALREADY_EXISTS: ClassVar = ErrorCode.ALREADY_EXISTS
    CANCELLED: ClassVar = ErrorCode.CANCELLED

    def __init__(self, message: str, code: ErrorCode = ErrorCode.INTERNAL):
        if not isinstance(code, ErrorCode):
            raise TypeError(
                f"TritonError: code must be one of TritonError.UNKNOWN … CANCELLED, found {code!r}"
            )
        self._message = text("TritonError: message", message)
        self._code = code

    def code(self) -> ErrorCode:
        return self._code

    def message(self) -> str:
        return self._message

    def __repr__(self) -> str:
        return f"TritonError({self._message!r}, TritonError.{self._code.name})"


class TritonModelException(Exception):
    """An error that this interface or the model raises."""
