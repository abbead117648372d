"""Body and headers of a call → Submission."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING

from core.config import Signature
from core.errors import CoreError, Kind, invalid, unsupported
from core.tensor import Buffer
from core_jobs.http.query import number
from core_jobs.job import BATCH, REQUEST, Submission
from core_jobs.offline.inputs.uploads import count_filled_lines
from core_jobs.options import JobsOptions
from core_jobs.running.reading import JobReader, parsing_headers
from frontends.http.background import begin, turn
from frontends.http.codec import compression
from frontends.http.codec.json_text import MEMBERS, read_json
from frontends.http.message import HttpRequest
from frontends.http.options import HttpOptions

if TYPE_CHECKING:
    from core.server import InferenceServer

KEY = "Idempotency-Key"
DEADLINE = "Job-Deadline-Secs"
KEEP = "Job-Keep-Secs"

_LINES = ("application/jsonl", "application/x-ndjson", "application/x-jsonlines")
MOST_REQUESTS = 1_000_000
_MOST_DEADLINE_S = 30 * 86400.0
_MOST_KEY = 255
_LOOKED_AT = 64 << 10  # bytes of a body, for a hint
_UNPACKED = "the unpacked requests of a job"
_LINES_OF_BATCH = "the lines of a batch"
_LINE_BYTES = 256  # of the view of a line, and its place in a list


async def submission_of(
    server: InferenceServer, reader: JobReader, caller: str, call: HttpRequest
) -> Submission:
    """Return the job that a call wants. Raises CoreError for what cannot become one."""
    model, version = call.model, call.version
    signature = _signature(server, model, version)
    options = JobsOptions.of(server.options)
    key, deadline_s, keep_s = settings_of(call.headers, options)
    is_batch = call.headers.get("Content-Type", "").partition(";")[0].strip().lower() in _LINES
    body = await plain_body(server, call)
    if not len(body):
        raise invalid("the body is empty; expected a request, or a line of JSON for each request")
    kind = BATCH if is_batch else REQUEST
    headers = reader.kept_headers(call.headers)
    if is_batch:  # it is the type of the lines together
        headers = {name: headers[name] for name in headers if name.lower() != "content-type"}
    # Forwarded headers, such as the number of a request, are others when a client repeats a submission.
    parsing = parsing_headers(headers)
    fields = (kind, model, version, parsing, call.headers.get(DEADLINE), keep_s)
    async with turn():
        bodies: list[Buffer] = [body]
        if is_batch:
            call.share.take_large(await begin(held_by_lines, body), _LINES_OF_BATCH)
            bodies = await begin(lines, body)
        digest = await begin(digest_of, [body], repr(fields))
    if not is_batch and signature is not None:
        try:
            await reader.parsed(kind, model, version, signature, headers, bytes(body))
        except CoreError as error:
            raise _with_hint(error, body) from None
    return Submission(
        caller=caller,
        model=model,
        version=version,
        kind=kind,
        bodies=bodies,
        digest=digest,
        keep_s=keep_s,
        headers=headers,
        idempotency_key=key,
        deadline_s=None if deadline_s is None else time.time() + deadline_s,
    )


def _with_hint(error: CoreError, body: Buffer) -> CoreError:
    """Return the error of a request that may have been meant as a batch."""
    if b"\n{" not in bytes(memoryview(body)[:_LOOKED_AT]):
        return error
    return invalid(f"{error.message}; a batch of lines needs the header Content-Type: {_LINES[0]}")


def _signature(server: InferenceServer, model: str, version: int) -> Signature | None:
    """Return the signature of a model, None while it loads. Raises CoreError for an unknown model."""
    try:
        return server.models.signature(model, version)
    except CoreError as error:
        if error.kind is Kind.UNAVAILABLE:
            return None
        raise


def settings_of(
    headers: Mapping[str, str], options: JobsOptions
) -> tuple[str, float | None, float]:
    """Return (idempotency key, seconds until the deadline or None, seconds to keep the results)."""
    key = headers.get(KEY, "")
    if len(key) > _MOST_KEY:
        raise invalid(f"{KEY} has {len(key)} characters; expected at most {_MOST_KEY}")
    deadline_s = None
    if (text := headers.get(DEADLINE)) is not None:
        deadline_s = number(DEADLINE, text, _MOST_DEADLINE_S, 0.001)
    keep_s = options.jobs_keep_secs
    if (text := headers.get(KEEP)) is not None:
        keep_s = number(KEEP, text, options.jobs_keep_secs)
    return key, deadline_s, keep_s


async def plain_body(server: InferenceServer, call: HttpRequest) -> Buffer:
    """Return the body of a call without its compression. Raises CoreError for a coding that is not known."""
    encoding = call.headers.get("Content-Encoding")
    if not compression.known(encoding):
        raise unsupported(f"Content-Encoding is '{encoding}'; expected {compression.OFFERED}")
    if encoding is None or encoding == compression.IDENTITY:
        return call.body
    most_bytes = HttpOptions.of(server.options).http_max_input_size
    unpacking = compression.Unpacking(call.body, encoding, most_bytes)
    async with turn():
        plain = await unpacking.rest(lambda size: call.share.take_unpaid(size, _UNPACKED))
    call.share.take_large(len(plain), _UNPACKED)
    return plain


def held_by_lines(body: Buffer) -> int:
    """Return the bytes that `lines` takes beside the body. Thread-safe."""
    return _LINE_BYTES * min(count_filled_lines(memoryview(body)), MOST_REQUESTS)


def lines(body: Buffer) -> list[Buffer]:
    """Return the lines of a batch: views of `body`, one for each request; empty lines are none. Thread-safe.

    Raises CoreError(INVALID) for a line that is no JSON object with inputs, and for too many.
    """
    view = memoryview(body).toreadonly()
    data = body if isinstance(body, bytes | bytearray) else bytes(body)
    found: list[Buffer] = []
    at = number_of_line = 0
    while at < len(data):
        end = data.find(b"\n", at)
        end = len(data) if end < 0 else end
        number_of_line += 1
        line = view[at:end]
        at = end + 1
        if not line[:1024].tobytes().strip() and not line.tobytes().strip():
            continue
        if len(found) >= MOST_REQUESTS:
            raise invalid(f"a job has at most {MOST_REQUESTS} requests; send several jobs")
        _check(line, number_of_line)
        found.append(line)
    if not found:
        raise invalid("the body has no line with a request")
    return found


def _check(line: memoryview, number_of_line: int) -> None:
    try:
        document = read_json(line, MEMBERS)
    except CoreError as error:
        raise invalid(f"line {number_of_line} of the batch: {error.message}") from None
    if type(document) is not dict or "inputs" not in document:
        raise invalid(
            f"line {number_of_line} of the batch is no request; expected an object with 'inputs'"
        )


def digest_of(data: Iterable[Buffer], fields: str) -> bytes:
    """Return what recognizes a repeated submission. Thread-safe."""
    found = sha256(fields.encode("utf-8", "surrogateescape"))
    for each in data:
        found.update(each)
    return found.digest()
