"""The header in which a client says how long it waits.

It is gRPC's own, with gRPC's values: gateways between JSON and gRPC take it over HTTP/1.1 as well, and it
is the only one of its kind whose units are specified and that no proxy adds by itself.
Source of the form: "Timeout" in the protocol of gRPC over HTTP/2.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from core.errors import invalid

TIMEOUT = "grpc-timeout"

_VALUE = re.compile(r"([0-9]{1,8})([HMSmun])")
_NS = {"H": 3600 * 10**9, "M": 60 * 10**9, "S": 10**9, "m": 10**6, "u": 1000, "n": 1}


def timeout_ns(headers: Mapping[str, str]) -> int | None:
    """How long the client waits; None if it does not say. Raises CoreError(INVALID) for another value."""
    text = headers.get(TIMEOUT)
    if text is None:
        return None
    found = _VALUE.fullmatch(text.strip())
    if found is None:
        raise invalid(
            f"header {TIMEOUT} is '{text}', expected one to eight digits and a unit, one of "
            "H, M, S, m, u, n: 500m is half a second"
        )
    return int(found[1]) * _NS[found[2]]
