"""The header with the timeout of the client.

It is gRPC's own, with gRPC's values: gateways between JSON and gRPC accept it over HTTP/1.1 as well. No
other timeout header has specified units and is never added by proxies themselves.
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
    """Return the client's timeout in ns; None if absent. Raises CoreError(INVALID) for an invalid value."""
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
