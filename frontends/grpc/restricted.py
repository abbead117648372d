"""Methods that answer only those who show a secret in their metadata (--grpc-restricted-protocol)."""

from __future__ import annotations

import hmac
from dataclasses import replace

from core.errors import unavailable
from frontends.grpc.call import Call
from frontends.grpc.method import Method
from frontends.shared.access import ActiveCall

PREFIX = "triton-grpc-protocol-"

_FREE = ActiveCall()


def restricted(method: Method, key: str, secret: str) -> Method:
    """`method`, for calls that have `secret` under the prefixed `key`; others get UNAVAILABLE."""
    name = PREFIX + key

    def enter(call: Call) -> ActiveCall:
        _check(call, name, secret)
        return _FREE

    return replace(method, enter=enter)


def _check(call: Call, name: str, secret: str) -> None:
    shown = call.value(name) or ""
    shown = shown if isinstance(shown, bytes) else shown.encode()
    if not hmac.compare_digest(shown, secret.encode()):
        raise unavailable(f"This protocol is restricted, expecting header '{name}'")
