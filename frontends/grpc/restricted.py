"""Methods that answer only those who show a secret in their metadata (--grpc-restricted-protocol)."""

from __future__ import annotations

import hmac
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import replace

from core.errors import CoreError, unavailable
from frontends.grpc.call import Call
from frontends.grpc.method import (
    BeginFunction,
    Done,
    Method,
    StreamFunction,
    Unary,
    UnaryFunction,
)

PREFIX = "triton-grpc-protocol-"


def restricted(method: Method, key: str, secret: str) -> Method:
    """`method`, for calls that have `secret` under the prefixed `key`; others get UNAVAILABLE."""
    name = PREFIX + key
    if isinstance(method, Unary):
        # Both ways into it: an open one beside a guarded one would be no guard.
        begin = None if method.begin is None else _begin(method.begin, name, secret)
        return replace(method, function=_unary(method.function, name, secret), begin=begin)
    return replace(method, function=_stream(method.function, name, secret))


def _unary(function: UnaryFunction, name: str, secret: str) -> UnaryFunction:
    async def checked(request: bytes, call: Call) -> bytes:
        _check(call, name, secret)
        return await function(request, call)

    return checked


def _begin(begin: BeginFunction, name: str, secret: str) -> BeginFunction:
    def checked(request: bytes, call: Call, done: Done) -> None:
        try:
            _check(call, name, secret)
        except CoreError as error:
            done(error)
        else:
            begin(request, call, done)

    return checked


def _stream(function: StreamFunction, name: str, secret: str) -> StreamFunction:
    def checked(requests: AsyncIterator[bytes], call: Call) -> AsyncGenerator[bytes, None]:
        _check(call, name, secret)
        return function(requests, call)

    return checked


def _check(call: Call, name: str, secret: str) -> None:
    shown = call.value(name) or ""
    shown = shown if isinstance(shown, bytes) else shown.encode()
    if not hmac.compare_digest(shown, secret.encode()):
        raise unavailable(f"This protocol is restricted, expecting header '{name}'")
