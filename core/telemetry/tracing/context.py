"""SpanContext: the identity of a span in a distributed trace, as W3C Trace Context defines it.

traceparent, tracestate ─► [parsed] ─► SpanContext ─► [carrier] ─► JSON for models.  Pure values.
"""

from __future__ import annotations

import json
import random
import re
from typing import NamedTuple

_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
# One member of a tracestate: key=value; a key may have the form tenant@system.
_MEMBER = re.compile(
    r"(?:[a-z][a-z0-9_\-*/]{0,255}|[a-z0-9][a-z0-9_\-*/]{0,240}@[a-z][a-z0-9_\-*/]{0,13})"
    r"=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]"
)
_MOST_MEMBERS = 32

_random = random.SystemRandom()  # ids differ between workers and after a fork


class SpanContext(NamedTuple):
    """A span of this server, or the span of a client in the headers of its request.

    trace_id   128 bits, not zero; the same for all spans of a trace
    span_id    64 bits, not zero
    state      tracestate of the client, passed on unchanged; "" for none
    """

    trace_id: int
    span_id: int
    state: str = ""

    def child(self) -> SpanContext:
        """Return another span of the same trace."""
        return SpanContext(self.trace_id, _other_than_zero(64), self.state)

    @property
    def traceparent(self) -> str:
        """Return the traceparent header of the span, always with the flag "sampled"."""
        return f"00-{self.trace_id:032x}-{self.span_id:016x}-01"

    def carrier(self) -> str:
        """Return a JSON object from which a propagator of OpenTelemetry extracts the context."""
        fields = {"traceparent": self.traceparent}
        if self.state:
            fields["tracestate"] = self.state
        return json.dumps(fields, separators=(",", ":"))


def first() -> SpanContext:
    """Return the first span of a new trace."""
    return SpanContext(_other_than_zero(128), _other_than_zero(64))


def parsed(traceparent: str, tracestate: str = "") -> SpanContext | None:
    """Return the context in the headers of a request; None for an invalid traceparent.

    An invalid tracestate is dropped.
    """
    found = _TRACEPARENT.fullmatch(traceparent.strip())
    if found is None:
        return None
    version, trace_id, span_id, _, more = found.groups()
    # Later versions may append fields to the flags; version 00 has none.
    if version == "ff" or (version == "00" and more is not None):
        return None
    if not int(trace_id, 16) or not int(span_id, 16):
        return None
    return SpanContext(int(trace_id, 16), int(span_id, 16), _state(tracestate))


def _state(text: str) -> str:
    """Return the members of a tracestate; "" if one is invalid, two have one key, or there are over 32."""
    members = [member.strip(" \t") for member in text.split(",")]
    members = [member for member in members if member]
    keys = {member.partition("=")[0] for member in members}
    if len(members) > _MOST_MEMBERS or len(keys) < len(members):
        return ""
    return ",".join(members) if all(map(_MEMBER.fullmatch, members)) else ""


def _other_than_zero(bits: int) -> int:
    while not (found := _random.getrandbits(bits)):
        pass
    return found
