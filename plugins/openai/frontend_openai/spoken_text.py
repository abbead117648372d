"""SpokenText: the transcript of a sound, and the forms in which a client may get it.

InferenceResponse, … ─► [SpokenTextReader] ─► SpokenText ─► json, text, verbose_json, srt, vtt
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from core.config import Signature
from core.dtypes import BYTES
from core.errors import internal
from core.response import InferenceResponse
from frontend_openai.pieces import PieceReader
from frontends.http.message import JSON_HEADERS, TEXT_HEADERS, HttpResponse

FORMS = ("json", "text", "verbose_json", "srt", "vtt")
TIMED_FORMS = ("verbose_json", "srt", "vtt")  # their parts have times
_SEGMENTS = ("segment_text", "segment_start", "segment_end")
_LANGUAGE, _DURATION = "language", "duration"


def has_times(signature: Signature) -> bool:
    """Return whether a model has the outputs for parts of the text with their times."""
    return all(name in signature.outputs for name in _SEGMENTS)


class SpokenSegment(NamedTuple):
    """A part of the text, with its place in the sound in seconds."""

    start: float
    end: float
    text: str


@dataclass(frozen=True, slots=True)
class SpokenText:
    """What is said in a sound.

    language   "" if the model does not say it
    seconds    length of the sound; 0 if the model does not say it
    """

    text: str
    language: str = ""
    seconds: float = 0.0
    segments: tuple[SpokenSegment, ...] = ()

    def response(self, form: str) -> HttpResponse:
        """Return the response in one of FORMS."""
        if form == "json":
            return _json({"text": self.text, **self._usage()})
        if form == "verbose_json":
            return _json(self._verbose())
        texts: dict[str, Callable[[], str]] = {
            "text": lambda: self.text,
            "srt": lambda: "".join(_srt(self.segments)),
            "vtt": lambda: "".join(_vtt(self.segments)),
        }
        return HttpResponse(200, TEXT_HEADERS, texts[form]().encode("utf-8", "replace"))

    def _verbose(self) -> dict[str, Any]:
        return {
            "task": "transcribe",
            "language": self.language,
            "duration": self.seconds,
            "text": self.text,
            "segments": [{"id": at, **each._asdict()} for at, each in enumerate(self.segments)],
            **self._usage(),
        }

    def _usage(self) -> dict[str, Any]:
        """Return the seconds that OpenAI bills, begun ones in full; {} if they are unknown."""
        if not self.seconds:
            return {}
        return {"usage": {"type": "duration", "seconds": math.ceil(self.seconds)}}


class SpokenTextReader:
    """Reads the responses of one request, in their order.

    output   name of the output with the text
    size     characters so far
    """

    def __init__(self, output: str):
        self._pieces = PieceReader(output)
        self._texts: list[str] = []
        self._segments: list[SpokenSegment] = []
        self._language = ""
        self._seconds = 0.0
        self.size = 0

    def read(self, response: InferenceResponse) -> None:
        """Take a response. Raises CoreError(INTERNAL) for outputs that are not understood."""
        self._texts.append(self._pieces.read(response).text)
        found = {each.name: each for each in response.outputs}
        if _LANGUAGE in found and found[_LANGUAGE].dtype is BYTES:
            self._language = "".join(map(_decoded, found[_LANGUAGE].array.ravel()))
        if _DURATION in found:
            self._seconds = float(found[_DURATION].array.sum())
        segments: list[SpokenSegment] = []
        if all(name in found for name in _SEGMENTS):
            texts, starts, ends = (found[name].array.ravel().tolist() for name in _SEGMENTS)
            if not len(texts) == len(starts) == len(ends):
                raise internal(
                    f"the outputs {', '.join(_SEGMENTS)} have {len(texts)}, {len(starts)} and {len(ends)} "
                    "elements; expected the same number"
                )
            rounded = ([round(float(each), 3) for each in column] for column in (starts, ends))
            segments = list(map(SpokenSegment, *rounded, map(_decoded, texts)))
        self._segments += segments
        self.size += len(self._texts[-1]) + sum(len(each.text) for each in segments)

    def end(self) -> SpokenText:
        """Return what all responses say."""
        text = "".join([*self._texts, self._pieces.end()])
        return SpokenText(text, self._language, round(self._seconds, 3), tuple(self._segments))


def _json(found: dict[str, Any]) -> HttpResponse:
    return HttpResponse(200, JSON_HEADERS, orjson.dumps(found))


def _decoded(found: Any) -> str:
    return found.decode("utf-8", "replace") if isinstance(found, bytes) else str(found)


def _srt(segments: Iterable[SpokenSegment]) -> Iterable[str]:
    for number, each in enumerate(segments, 1):
        start, end = (_clock(at, ",") for at in (each.start, each.end))
        yield f"{number}\n{start} --> {end}\n{_line(each.text)}\n\n"


def _vtt(segments: Iterable[SpokenSegment]) -> Iterable[str]:
    yield "WEBVTT\n\n"
    for each in segments:
        start, end = (_clock(at, ".") for at in (each.start, each.end))
        text = _line(each.text).replace("&", "&amp;").replace("<", "&lt;")
        yield f"{start} --> {end}\n{text}\n\n"


def _line(text: str) -> str:
    """Return the text in one line and without arrows: both would end it."""
    return " ".join(text.split()).replace("-->", "->")


def _clock(seconds: float, point: str) -> str:
    whole, milliseconds = divmod(round(max(0.0, seconds) * 1000), 1000)
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}{point}{milliseconds:03}"
