"""multipart/form-data → InferenceRequest: uploads from web pages (RFC 7578).

body ─► [parts] ─► FormPart ─► [read] ─► InferenceRequest

A part with the name of an input is that input: files become elements of BYTES or the bytes of UINT8, other
parts are JSON values, or texts for BYTES. "id" is the id of the request; a part with another name is a
parameter of it.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from core import dtypes
from core.config import InputSpec, Signature
from core.errors import CoreError, invalid
from core.request import InferenceRequest
from core.tensor import Buffer, Tensor
from frontends.http.codec.generate import read_input
from frontends.http.codec.json_tensor import filled
from frontends.http.codec.json_text import MEMBERS, MOST_TEXT_BYTES, read_json
from frontends.http.codec.limits import too_large
from frontends.http.codec.parameters import read_parameters

MOST_PARTS = 1000
MOST_PART_HEAD = 8 * 1024  # bytes of the headers of one part

_TYPE = "multipart/form-data"
_BOUNDARY = re.compile(r""";\s*boundary=(?:"([^"\\]{1,70})"|([^\s;"]{1,70}))\s*(?:;|\Z)""", re.I)
_PARAMETER = re.compile(r""";[ \t]*([\w*-]+)=("(?:[^"\\]|\\.)*"|[^;\s"]*)""", re.ASCII)
# A browser writes a quotation mark and the ends of lines in a name like this.
_ESCAPES = (("%22", '"'), ("%0D", "\r"), ("%0A", "\n"))
_JSON_TYPE = "application/json"


class FormPart(NamedTuple):
    """One part of a form.

    name           name of the field
    file           name of the file; None for a field that is no file
    content_type   media type in lower case without parameters; "" if the part has none
    data           view of the part's bytes in the body
    """

    name: str
    file: str | None
    content_type: str
    data: memoryview

    @property
    def is_file(self) -> bool:
        return self.file is not None

    @property
    def is_no_choice(self) -> bool:
        """Return whether the part is an empty file without a name: no file was chosen in the browser."""
        return self.file == "" and not self.data.nbytes


def is_form(headers: Mapping[str, str]) -> bool:
    """Return whether a request has a form as its body."""
    return headers.get("Content-Type", "").partition(";")[0].strip().lower() == _TYPE


def read(
    model: str,
    version: int,
    signature: Signature,
    headers: Mapping[str, str],
    body: Buffer,
    most_bytes: int,
) -> InferenceRequest:
    """Return the request that a form describes. Thread-safe.

    version      from the path, -1 for the newest
    signature    inputs of the model
    body         not compressed; UINT8 tensors may view it
    most_bytes   limit of the body in bytes (--http-max-input-size)
    Raises CoreError(INVALID) for a body over the limit, a malformed form, and a part that does not fit its
    input. A part that is no input must come once, be short text in UTF-8, be no file (but for "id"), and have
    no reserved name; a parameter of the protocol must have its type.
    """
    if len(body) > most_bytes:
        raise too_large(len(body), most_bytes)
    found: dict[str, list[FormPart]] = {}
    for part in parts(body, headers["Content-Type"]):
        if not part.is_no_choice:
            found.setdefault(part.name, []).append(part)
    request = InferenceRequest(model, {}, model_version=version)
    parameters: dict[str, Any] = {}
    for name, given in found.items():
        if (spec := signature.inputs.get(name)) is not None:
            batched = signature.max_batch_size > 0 and not spec.shape_tensor
            request.inputs[name] = _tensor(spec, batched, given, most_bytes)
        elif name == "id":
            request.id = _text(_only(given))
        else:
            parameters[name] = _parameter(_only(given), signature)
    read_parameters(parameters, request)
    return request


# Values ---------------------------------------------------------------------------


def _only(given: Sequence[FormPart]) -> FormPart:
    if len(given) > 1:
        raise invalid(
            f"the form has {len(given)} parts '{given[0].name}', which is no input; expected one"
        )
    return given[0]


def _text(part: FormPart) -> str:
    if part.data.nbytes > MOST_TEXT_BYTES:
        raise invalid(
            f"part '{part.name}' of the form has {part.data.nbytes} bytes; {MOST_TEXT_BYTES} are the most "
            "beside inputs"
        )
    try:
        return str(part.data, "utf-8")
    except UnicodeDecodeError:
        raise invalid(f"part '{part.name}' of the form is not text in UTF-8") from None


def _parameter(part: FormPart, signature: Signature) -> Any:
    """Return the value of a part that is no input: a number or a boolean if it is JSON's, else a text.

    Raises CoreError(INVALID) for a file, and for a text that is not UTF-8 or longer than MOST_TEXT_BYTES.
    """
    if part.is_file:
        names = ", ".join(f"'{name}'" for name in signature.inputs)
        raise invalid(
            f"the file '{part.name}' is no input of model '{signature.name}', whose inputs are {names}"
        )
    text = _text(part)
    if re.fullmatch(r"-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,18})?|true|false", text) is None:
        return text
    return read_json(text.encode())


def _tensor(spec: InputSpec, batched: bool, given: Sequence[FormPart], most_bytes: int) -> Tensor:
    has_file = any(part.is_file for part in given)
    if spec.dtype is dtypes.BYTES and (has_file or given[0].content_type != _JSON_TYPE):
        return _strings(spec, batched, given)
    if not has_file:
        if len(given) > 1:
            raise _wrong(
                spec, f"{len(given)} parts; expected one with a JSON value, such as [1, 2]"
            )
        return read_input(spec, batched, _value(spec, given[0]), most_bytes)
    if spec.dtype is not dtypes.UINT8:
        raise _wrong(spec, "a file, which only an input of BYTES or UINT8 takes")
    if not all(part.is_file for part in given):
        raise _wrong(
            spec, "files and other parts; expected only files, or one part with a JSON value"
        )
    return _octets(spec, batched, given)


def _strings(spec: InputSpec, batched: bool, given: Sequence[FormPart]) -> Tensor:
    """Return a BYTES tensor with the unchanged data of each part as one element.

    Raises CoreError(INVALID) if that number of elements does not fill the shape.
    """
    shape = _shape(spec, batched, len(given), f"{len(given)} parts")
    pieces: list[Buffer] = []
    for part in given:
        pieces += (struct.pack("<I", part.data.nbytes), part.data)
    return Tensor(spec.name, spec.dtype, shape, raw=b"".join(pieces))


def _octets(spec: InputSpec, batched: bool, given: Sequence[FormPart]) -> Tensor:
    """Return a UINT8 tensor of the bytes of files.

    batched   whether the input has a batch dimension; then each file is a row. If not, there may be one file
    Raises CoreError(INVALID) for more files, files of several sizes, and a size that does not fill the shape.
    """
    size = given[0].data.nbytes
    if len(given) == 1:
        data: Buffer = given[0].data
    elif not batched:
        raise _wrong(spec, f"{len(given)} files; a model without a batch dimension takes one")
    elif any(part.data.nbytes != size for part in given):
        raise _wrong(spec, "files of several sizes; the rows of a batch have one")
    else:
        data = b"".join(part.data for part in given)
    row = _shape(spec, False, size, f"a file of {size} bytes")
    shape = (len(given), *row) if batched else row
    return Tensor(spec.name, spec.dtype, shape, raw=data)


def _shape(spec: InputSpec, batched: bool, count: int, what: str) -> tuple[int, ...]:
    dims = (-1, *spec.dims) if batched else spec.dims
    if (shape := filled(dims, count)) is None:
        raise _wrong(spec, f"{what}, which do not fill its shape {list(dims)}")
    return shape


def _value(spec: InputSpec, part: FormPart) -> Any:
    """Return the JSON value of a part. Raises CoreError(INVALID) if the part is no JSON value."""
    try:
        # A document with one member: a large list then stays JSON text.
        document = read_json(b"".join((b'{"value":', part.data, b"}")), MEMBERS)
    except CoreError as error:
        raise _wrong(spec, f"a part that is no JSON value: {error.message}") from None
    if document.keys() != {"value"}:
        raise _wrong(spec, "a part that is no JSON value")
    return document["value"]


def _wrong(spec: InputSpec, what: str) -> CoreError:
    return invalid(f"input '{spec.name}' of {spec.dtype} got {what}")


# Parts ----------------------------------------------------------------------------


def parts(body: Buffer, content_type: str, most: int = MOST_PARTS) -> Iterator[FormPart]:
    """Yield the parts of a form.

    body           bytes or bytearray
    content_type   of the request, with the boundary
    Raises CoreError(INVALID) for a malformed form, and for more than `most` parts.
    """
    if (found := _BOUNDARY.search(content_type)) is None:
        raise _malformed("its Content-Type has no boundary of 1 to 70 characters")
    first = b"--" + (found[1] or found[2]).encode("utf-8", "surrogateescape")
    delimiter = b"\r\n" + first
    view = memoryview(body).toreadonly()
    at = 0 if body.startswith(first) else body.find(delimiter)
    if at < 0:
        raise _malformed("its boundary is not in it")
    at += len(first) if at == 0 and body.startswith(first) else len(delimiter)
    for _ in range(most + 1):
        if body[at : at + 2] == b"--":
            return
        if body[at : at + 2] != b"\r\n":
            raise _malformed(f"the boundary at byte {at} does not end its line")
        begin = body.find(b"\r\n\r\n", at, at + MOST_PART_HEAD)
        if begin < 0:
            raise _malformed(f"a part has no end of its headers within {MOST_PART_HEAD} bytes")
        end = body.find(delimiter, begin + 2)
        if end < 0:
            raise _malformed("it ends within a part")
        yield _part(bytes(body[at:begin]), view[begin + 4 : max(end, begin + 4)])
        at = end + len(delimiter)
    raise _malformed(f"it has more than {most} parts")


def _part(head: bytes, data: memoryview) -> FormPart:
    """Return the part with these headers. Raises CoreError(INVALID) for malformed headers.

    head   end of the boundary's line, and the lines of the headers
    """
    try:
        lines = head.decode().split("\r\n")
    except UnicodeDecodeError:
        raise _malformed("the headers of a part are not UTF-8") from None
    headers = {}
    for line in lines[1:]:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    kind, _, _ = headers.get("content-disposition", "").partition(";")
    given = {
        name.lower(): _unquoted(value)
        for name, value in _PARAMETER.findall(headers.get("content-disposition", ""))
    }
    if kind.strip().lower() != "form-data" or "name" not in given:
        raise _malformed("a part has no 'Content-Disposition: form-data' with a name")
    encoding = headers.get("content-transfer-encoding", "binary").lower()
    if encoding not in ("binary", "7bit", "8bit"):
        raise _malformed(
            f"part '{given['name']}' has the transfer encoding '{encoding}', expected none"
        )
    content_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    file = given.get("filename", "" if "filename*" in given else None)
    return FormPart(given["name"], file, content_type, data)


def _unquoted(value: str) -> str:
    if value.startswith('"'):
        value = re.sub(r"\\(.)", r"\1", value[1:-1])
    for escape, character in _ESCAPES:
        value = value.replace(escape, character)
    return value


def _malformed(why: str) -> CoreError:
    return invalid(f"the body is not a form of {_TYPE}: {why}")
