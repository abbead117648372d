"""Job, Item, Result: what the parts of this package pass on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from core.tensor import Buffer

QUEUED, RUNNING, DONE, FAILED, CANCELLED = STATES = (
    "queued",
    "running",
    "done",
    "failed",
    "cancelled",
)
ENDED = (DONE, FAILED, CANCELLED)
REQUEST, BATCH, FILES = "request", "batch", "files"  # kinds


@dataclass(frozen=True, slots=True)
class Job:
    """One job, as it was when it was read.

    key            number in the order of submissions
    id             name for clients, hard to guess
    caller         who may see it; "" for every client of a server that identifies none
    model, version   as the client wrote them; version -1 for none
    kind           REQUEST: one request, whose result is its response; BATCH: lines of requests; FILES: files
                   that became requests
    headers        that its requests need: for their parsing, and those for the model; none after the end
    total, succeeded, failed   numbers of requests: all, answered, answered with an error
    bytes          of the requests that have no result yet
    result_bytes   of the results
    cancelling     whether its caller wants no more of it
    created_s, …   seconds since 1970; None if it has not happened, or has no limit
    error          why it failed; "" for other states
    """

    key: int
    id: str
    caller: str
    model: str
    version: int
    kind: str
    headers: Mapping[str, str]
    state: str
    total: int
    succeeded: int
    failed: int
    bytes: int
    result_bytes: int
    cancelling: bool
    created_s: float
    started_s: float | None
    ended_s: float | None
    deadline_s: float | None
    keep_s: float
    error: str

    @property
    def has_ended(self) -> bool:
        return self.state in ENDED

    def document(self) -> dict[str, Any]:
        """Return the JSON object that clients get. Times are UTC; null for what has not happened."""
        answered = self.succeeded + self.failed
        expires_s = None if self.ended_s is None else self.ended_s + self.keep_s
        found: dict[str, Any] = {
            "id": self.id,
            "model": self.model,
            "kind": self.kind,
            "state": self.state,
            "progress": round(answered / self.total, 4) if self.total else 1.0,
            "requests": {"total": self.total, "succeeded": self.succeeded, "failed": self.failed},
            "result_bytes": self.result_bytes,
            "created": _text(self.created_s),
            "started": _text(self.started_s),
            "ended": _text(self.ended_s),
            "deadline": _text(self.deadline_s),
            "expires": _text(expires_s),
        }
        if self.version >= 0:
            found["version"] = str(self.version)
        if self.cancelling and not self.has_ended:
            found["cancelling"] = True
        if self.error:
            found["error"] = self.error
        return found


def _text(time_s: float | None) -> str | None:
    if time_s is None:
        return None
    found = datetime.fromtimestamp(time_s, timezone.utc)
    return found.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True, slots=True)
class Origin:
    """What of an uploaded file became a request.

    file     name of the file
    place    in it: a line, a row; "" for the whole file. Many origins share the other texts
    form     how its bytes are read: the suffix of the file's name, "" for one that is an input as it is
    input    that it feeds if it names none; "" for the only one
    """

    file: str
    place: str
    form: str
    input: str

    @property
    def source(self) -> str:
        """Name of the file, and the place in it."""
        return f"{self.file}{self.place}"


@dataclass(frozen=True, slots=True)
class Item:
    """One request of a job that has no result yet.

    index    of the request in its job, from 0 on
    body     as the client sent it
    origin   of a request in a job of files
    """

    index: int
    body: bytes
    origin: Origin | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """The answer to one request of a job: what a client of the model's own route would have got.

    status   of HTTP
    source   in an uploaded file; "" for a request that is of none
    """

    index: int
    status: int
    headers: Mapping[str, str]
    body: bytes
    source: str = ""

    @property
    def is_success(self) -> bool:
        return self.status < 400


@dataclass(frozen=True, slots=True)
class Submission:
    """A job that a client wants to begin.

    bodies       one for each request
    origins      one for each request of a job of files; empty for others
    digest       of what was sent, to recognize a repeated submission
    idempotency_key   "" for none
    deadline_s   seconds since 1970; None for no limit
    """

    caller: str
    model: str
    version: int
    kind: str
    bodies: list[Buffer]
    digest: bytes
    keep_s: float
    headers: Mapping[str, str] = field(default_factory=dict)
    idempotency_key: str = ""
    deadline_s: float | None = None
    origins: Sequence[Origin] = ()
