"""The files of a form → Submission. A file becomes the requests that `core run --input` makes of it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from core.config import Signature
from core.errors import CoreError, invalid
from core.tensor import Buffer
from core_jobs.http.query import whole
from core_jobs.http.submission import (
    DEADLINE,
    MOST_REQUESTS,
    digest_of,
    plain_body,
    settings_of,
)
from core_jobs.job import FILES, Origin, Submission
from core_jobs.offline.inputs.array_bytes import expanded_bytes
from core_jobs.offline.inputs.uploads import JSON_LINES, NPY, NPZ, Upload, most_requests, split
from core_jobs.options import JobsOptions
from core_jobs.running.reading import JobReader, parsing_headers
from frontends.http.background import begin, turn
from frontends.http.codec.form import FormPart, is_form, parts
from frontends.http.codec.limits import too_large
from frontends.http.message import HttpRequest
from frontends.http.options import HttpOptions

if TYPE_CHECKING:
    from core.server import InferenceServer

_FIELDS = ("rows", "input_name")
_FILE = ("file", "files")  # names of parts whose files feed no certain input
_MOST_NAME = 255  # bytes
_MOST_ROWS = 1_000_000
_ROWS = "the rows of uploaded arrays"
_REQUESTS = "the requests that uploaded files become"
_REQUEST_BYTES = 384  # of a request beside its rows: a view or the head of an array, and its Origin
_ARRAY_BYTES = 384  # of each array in the archive of a request: its head, and its entries


async def files_of(
    server: InferenceServer, reader: JobReader, caller: str, call: HttpRequest
) -> Submission:
    """Return the job of the files that a call has brought. Raises CoreError for what cannot become one."""
    model, version = call.model, call.version
    if not is_form(call.headers):
        raise invalid(
            "the body is no form; expected Content-Type: multipart/form-data with the files, as from "
            "curl -F file=@NAME"
        )
    signature = server.models.signature(model, version)
    options = JobsOptions.of(server.options)
    key, deadline_s, keep_s = settings_of(call.headers, options)
    body = await plain_body(server, call)
    most_bytes = HttpOptions.of(server.options).http_max_input_size
    if len(body) > most_bytes:
        raise too_large(len(body), most_bytes)
    async with turn():
        given = await begin(_parts, body, call.headers["Content-Type"], options.jobs_files)
        fields = _fields(given)
        rows = whole("the field 'rows'", fields.get("rows", "1"), _MOST_ROWS, 1)
        files = _uploads(given, signature, fields.get("input_name", ""))
        call.share.take_unpaid(await begin(_unpacked_bytes, files, most_bytes), _ROWS)
        call.share.take(await begin(_held, files, signature, rows), _REQUESTS)
        bodies, origins = await begin(_split, files, signature, rows, most_bytes)
        settings = (FILES, model, version, rows, call.headers.get(DEADLINE), keep_s)
        names = [(each.name, each.input, each.data.nbytes) for each in files]
        digest = await begin(digest_of, [each.data for each in files], repr((settings, names)))
    headers = reader.kept_headers(call.headers)
    parsing = parsing_headers(headers)
    return Submission(
        caller=caller,
        model=model,
        version=version,
        kind=FILES,
        bodies=bodies,
        digest=digest,
        keep_s=keep_s,
        headers={name: value for name, value in headers.items() if name not in parsing},
        idempotency_key=key,
        deadline_s=None if deadline_s is None else time.time() + deadline_s,
        origins=origins,
    )


def _parts(body: Buffer, content_type: str, most_files: int) -> list[FormPart]:
    found, files = [], 0
    for each in parts(body, content_type, most_files + 1 + len(_FIELDS)):
        if each.is_no_choice:
            continue
        files += each.is_file
        if files > most_files:
            raise invalid(f"a job has at most {most_files} files (--jobs-files); send several jobs")
        found.append(each)
    return found


def _fields(given: Iterable[FormPart]) -> dict[str, str]:
    """Return name → text of the parts that are no files."""
    found: dict[str, str] = {}
    for part in given:
        if part.is_file:
            continue
        if part.name not in _FIELDS:
            raise invalid(
                f"the form has a field '{part.name[:64]}'; expected files, and the fields "
                f"{' and '.join(_FIELDS)}"
            )
        if part.name in found:
            raise invalid(f"the form has the field '{part.name}' twice; expected once")
        found[part.name] = bytes(part.data[:_MOST_NAME]).decode("utf-8", "replace")
    return found


def _uploads(given: Iterable[FormPart], signature: Signature, input_name: str) -> list[Upload]:
    """Return the files of a form. Raises CoreError(INVALID) for a wrong name, and for a form without any."""
    found: dict[str, Upload] = {}
    needs_name = False
    for part in given:
        if part.file is None:
            continue
        name = _name_of(part)
        if name in found:
            raise invalid(
                f"two files of the form are named '{name}'; give one of them another name, as with curl -F "
                "'file=@PATH;filename=NAME'"
            )
        if part.name not in signature.inputs and part.name not in _FILE:
            raise invalid(
                f"the file '{name}' is in the field '{part.name[:64]}'; expected {_FILE[0]}, or the name of "
                f"an input: {', '.join(signature.inputs)}"
            )
        found[name] = _upload(name, part, signature, input_name)
        needs_name |= part.name not in signature.inputs and not found[name].names_inputs
    if not found:
        raise invalid("the form has no file; expected at least one, as from curl -F file=@NAME")
    if input_name and not needs_name:
        raise invalid(
            f"the field 'input_name' is '{input_name}', but each file names its inputs, or is in the field "
            "of one; leave 'input_name' out"
        )
    return list(found.values())


def _upload(name: str, part: FormPart, signature: Signature, input_name: str) -> Upload:
    """Return the file of a part. Raises CoreError(INVALID) for one whose content and field name inputs."""
    if part.name not in signature.inputs:
        return Upload(name, part.data, input_name)
    found = Upload(name, part.data, part.name)
    if found.names_inputs and part.name not in _FILE:
        raise invalid(
            f"the file '{name}' is in the field '{part.name}' of an input, but a file {found.form} names its "
            f"inputs; send it in the field '{_FILE[0]}'"
        )
    return found


def _name_of(part: FormPart) -> str:
    name = part.file or ""
    if not name or not name.isprintable() or len(name.encode()) > _MOST_NAME:
        raise invalid(
            f"a file in the field '{part.name[:64]}' has the name '{name[:64]}'; expected 1 to {_MOST_NAME} "
            "bytes of printable characters"
        )
    return name


def _unpacked_bytes(files: Sequence[Upload], most_bytes: int) -> int:
    """Return the bytes that .npz files unpack to, twice. Raises CoreError for too many.

    Twice: the arrays, and the parts that are made of them.
    """
    found = sum(expanded_bytes(each.data, each.name) for each in files if each.form == NPZ)
    if found > most_bytes:
        raise too_large(found, most_bytes)
    return 2 * found


def _held(files: Sequence[Upload], signature: Signature, rows: int) -> int:
    """Return the bytes that the requests of files take beside the files and what is unpacked.

    Raises CoreError(INVALID) for too many requests before any of them is made.
    """
    held_bytes = count = 0
    for file in files:
        found = most_requests(file, signature, rows)
        if file.form == JSON_LINES:  # empty lines are no requests
            found = min(found, MOST_REQUESTS)
        else:
            count += found
            if count > MOST_REQUESTS:
                raise _too_many(file)
        arrays = len(signature.inputs) if file.form == NPZ else 0
        held_bytes += found * (_REQUEST_BYTES + arrays * _ARRAY_BYTES)
        if file.form == NPY:
            held_bytes += file.data.nbytes
    return held_bytes


def _split(
    files: Sequence[Upload], signature: Signature, rows: int, most_bytes: int
) -> tuple[list[Buffer], list[Origin]]:
    """Return the bytes and the origins of all requests.

    Raises CoreError(INVALID) for too many of them, and for a file without any.
    """
    bodies: list[Buffer] = []
    origins: list[Origin] = []
    size = 0
    for file in files:
        before = len(bodies)
        for data, origin in split(file, signature, rows):
            size += len(data)
            if len(bodies) == MOST_REQUESTS:
                raise _too_many(file)
            if size > 2 * most_bytes:  # the heads of rows may take more than the rows
                raise invalid(
                    f"the requests of file '{file.name}' and of those before it take more than "
                    f"{2 * most_bytes} bytes: each has a copy of the head of its arrays; put more rows in a "
                    "request (the field 'rows'), or send several jobs"
                )
            bodies.append(data)
            origins.append(origin)
        if len(bodies) == before:
            raise invalid(f"the file '{file.name}' has no request: it has no lines or rows")
    return bodies, origins


def _too_many(file: Upload) -> CoreError:
    return invalid(
        f"a job has at most {MOST_REQUESTS} requests, which file '{file.name}' exceeds; send several jobs, "
        "or more rows in a request (the field 'rows')"
    )
