"""Observations of gRPC calls, for both engines (frontends/shared/call_observers.py)."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from frontends.grpc.access_log import client_of, names_in
from frontends.grpc.call import GrpcCall
from frontends.shared.call_observers import CallObservation, ObservedCall

if TYPE_CHECKING:
    from frontends.grpc.method import Method

Begin = Callable[[ObservedCall], "CallObservation | None"]


def observe(begin: Begin, method: Method, call: GrpcCall, message: bytes | None = None) -> None:
    """Set `call.observation`: None if no observer wants the call.

    message   of a unary call, decompressed: the observation gets it; None for a stream, whose messages come
              later
    """
    model, version, _ = ("", "", "") if message is None else names_in(method.path, message)
    caller = None if call.active is None else call.active.caller
    call.observation = begin(
        ObservedCall(
            "grpc",
            _head(method.path, call),
            method.category,
            model,
            version,
            client_of(call.peer),
            caller.name if caller is not None and caller.known else "",
        )
    )
    if call.observation is not None and message is not None:
        call.observation.receive(message)


def _head(path: str, call: GrpcCall) -> bytes:
    lines = [f"POST {path} HTTP/2\r\n"]
    if call.deadline_ns:
        left_us = max(1, (call.deadline_ns - time.monotonic_ns()) // 1000)
        lines.append(f"grpc-timeout: {left_us}u\r\n")
    for name, value in call.metadata:
        if isinstance(value, bytes):
            value = base64.b64encode(value).decode()
        lines.append(f"{name}: {value}\r\n")
    return "".join(lines).encode("utf-8", "surrogateescape")
