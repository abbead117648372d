"""POST /v1/audio/transcriptions: the text of a sound, by models with a BYTES input `audio`.

form ─► audio, language, … ─► one request ─► all responses ─► SpokenText ─► JSON, text, subtitles
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from core_generate.chat.fields import FieldError as MediaError
from core_generate.chat.media import check_audio

from core.config import Signature
from core.dtypes import BYTES
from core.errors import CoreError, invalid, unavailable
from core.request import InferenceRequest
from core.tensor import Tensor
from frontend_openai.engine_info import EngineInfo, info_of
from frontend_openai.errors import wrong
from frontend_openai.generation import MOST_TEXT
from frontend_openai.models import unknown_model
from frontend_openai.spoken_text import FORMS, TIMED_FORMS, SpokenText, SpokenTextReader, has_times
from frontends.http.codec.form import FormPart, is_form, parts
from frontends.http.message import HttpRequest, HttpResponse
from frontends.http.services.traced import submit

if TYPE_CHECKING:
    from core.server import InferenceServer

AUDIO, TIMES = "audio", "times"
_HINTS = ("language", "prompt", "temperature")
_GRANULARITIES = "timestamp_granularities[]"
_MOST_BYTES = 64 * 1024  # of a field that is no file


async def transcriptions(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Transcribe a sound."""
    if not is_form(call.headers):
        raise invalid("the body is no form; expected Content-Type: multipart/form-data")
    fields = _read_fields(parts(call.body, call.headers["Content-Type"]))
    name = _text(fields, "model")
    if not server.models.knows(name):
        raise unknown_model(name)
    call.captures = {"model": name, "version": None}
    signature = server.models.signature(name)
    info = info_of(server.models.config(name))
    output = _check(signature)
    form = _read_form(fields, signature, info)
    if _text(fields, "stream") not in ("", "false", "False"):
        raise wrong("stream", "this route has no events", "unsupported")
    request = _request(signature, info, fields)
    if form in TIMED_FORMS and TIMES in signature.inputs:
        request.inputs[TIMES] = _tensor(signature, TIMES, "1")
    if fields:
        raise wrong(next(iter(fields)), "this field is not supported", "unknown_parameter")
    request.id = call.headers.get("X-Request-Id", "")
    call.asked = request
    found = await _whole(server, call, request, output)
    return found.response(form)


def _read_form(fields: dict[str, FormPart], signature: Signature, info: EngineInfo) -> str:
    """Take out the fields that say how the response looks, and return `response_format`.

    Raises FieldError for an unknown form, and for times that the model does not give.
    """
    form = _text(fields, "response_format") or "json"
    if form not in FORMS:
        raise wrong("response_format", f"expected one of {', '.join(FORMS)}; found {form[:50]}")
    timed = has_times(signature) and (not info.is_engine or TIMES in (info.supports or ()))
    if form in TIMED_FORMS and not timed:
        raise wrong(
            "response_format",
            f"model '{signature.name}' gives no times, which {form} needs; expected json or text",
            "unsupported",
        )
    granularity = _text(fields, _GRANULARITIES)
    if granularity not in ("", "segment"):
        raise wrong(_GRANULARITIES, f"expected segment, found {granularity[:50]}", "unsupported")
    if granularity and form != "verbose_json":
        raise wrong(_GRANULARITIES, "only response_format verbose_json has them", "unsupported")
    return form


def _read_fields(found: Iterable[FormPart]) -> dict[str, FormPart]:
    """Return the parts of the form by their names. Raises FieldError for a name that comes twice."""
    fields: dict[str, FormPart] = {}
    for part in found:
        if part.name in fields:
            raise wrong(part.name, "the form has this field more than once; expected one")
        fields[part.name] = part
    return fields


def _text(fields: dict[str, FormPart], name: str) -> str:
    """Take a field out and return its text; "" if it is absent. Raises FieldError if it is no text."""
    part = fields.pop(name, None)
    if part is None:
        return ""
    if part.is_file or part.data.nbytes > _MOST_BYTES:
        raise wrong(name, f"expected a text of at most {_MOST_BYTES} bytes")
    try:
        return str(part.data, "utf-8")
    except UnicodeDecodeError:
        raise wrong(name, "expected a text in UTF-8") from None


def _check(signature: Signature) -> str:
    """Return the name of the output with the text. Raises CoreError(INVALID) if the model has no such use."""
    inputs = signature.inputs
    if AUDIO not in inputs or inputs[AUDIO].dtype is not BYTES:
        raise invalid(
            f"model '{signature.name}' transcribes no sound: expected a BYTES input {AUDIO}; it has "
            f"{', '.join(inputs)}"
        )
    others = [
        each
        for each, spec in inputs.items()
        if not spec.optional and each not in (AUDIO, TIMES, *_HINTS)
    ]
    if others:
        raise invalid(
            f"model '{signature.name}' needs the inputs {', '.join(others)}, which are no part of a "
            "transcription; make them optional, or call it over v2"
        )
    texts = [each for each, spec in signature.outputs.items() if spec.dtype is BYTES]
    if "text_output" in texts:
        return "text_output"
    if len(texts) != 1:
        raise invalid(
            f"model '{signature.name}' has no text for a transcription: expected one BYTES output named "
            f"text_output, or only one of any name; it has {', '.join(texts) or 'none'}"
        )
    return texts[0]


def _request(
    signature: Signature, info: EngineInfo, fields: dict[str, FormPart]
) -> InferenceRequest:
    """Return the request with the sound and the hints; take their fields out."""
    part = fields.pop("file", None)
    if part is None or not part.is_file:
        raise wrong("file", "expected a file of sound in the form")
    try:
        sound = check_audio(bytes(part.data), "file")
    except MediaError as error:
        raise wrong("file", error.message.removeprefix("file: ")) from None
    request = InferenceRequest(signature.name, {}, model_version=signature.version)
    request.inputs[AUDIO] = _tensor(signature, AUDIO, sound)
    for name in _HINTS:
        value = _text(fields, name)
        if not value:
            if name in signature.inputs and not signature.inputs[name].optional:
                raise wrong(name, f"model '{signature.name}' needs this field", "missing")
            continue
        if name not in signature.inputs or (info.is_engine and name not in (info.supports or ())):
            raise wrong(name, f"model '{signature.name}' does not support this", "unsupported")
        request.inputs[name] = _tensor(signature, name, value)
    return request


def _tensor(signature: Signature, name: str, value: bytes | str) -> Tensor:
    """Return an input of one element. Raises FieldError for a text that is no number of the input's type."""
    dtype = signature.inputs[name].dtype
    shape = (1, 1) if signature.max_batch_size > 0 else (1,)
    if dtype is BYTES:
        data = value.encode() if isinstance(value, str) else value
        return Tensor(name, BYTES, shape, array=np.array([data], object).reshape(shape))
    try:
        array = np.array([float(value)]).astype(dtype.numpy).reshape(shape)
    except ValueError:
        raise wrong(name, "expected a number", "invalid_type") from None
    return Tensor(name, dtype, shape, array=array)


async def _whole(
    server: InferenceServer, call: HttpRequest, request: InferenceRequest, output: str
) -> SpokenText:
    """Return what all responses say. Raises the CoreError of the model."""
    reader = SpokenTextReader(output)
    reply = submit(server, call, request)
    try:
        async for item in reply:
            if isinstance(item, CoreError):
                raise item
            reader.read(item)
            if reader.size > MOST_TEXT:
                raise unavailable(f"the model has generated more than {MOST_TEXT} characters")
    except BaseException:
        reply.cancel()  # also if the client has gone
        raise
    return reader.end()
