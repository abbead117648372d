"""Binary tensors on platforms that forward no request header except the type of the body.

    Content-Type: application/vnd.….binary+json;json-header-size=N

N is the number of bytes of JSON at the start of the body. The header Inference-Header-Content-Length, which
has this number elsewhere, is ignored here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from multidict import CIMultiDict

from core.errors import CoreError, invalid
from frontends.http.codec.limits import JSON_SIZE
from frontends.http.message import HttpRequest, HttpResponse
from frontends.http.router import Service

if TYPE_CHECKING:
    from core.server import InferenceServer

_SIZE = re.compile(r"\s*([+-]?[0-9]+)")
_MOST = 2**31 - 1
# Headers of a request that Triton ignores on these ports: bodies are not compressed there.
_IGNORED = (JSON_SIZE, "Content-Encoding", "Accept-Encoding")


class BinaryForm:
    """The content type of binary tensors on one platform.

    mime      the type, without its parameter
    answers   whether responses use this content type too
    """

    def __init__(self, mime: str, *, answers: bool):
        self._start = f"{mime};json-header-size="
        self._answers = answers

    def service(self, infer: Service) -> Service:
        """Return a service that calls `infer`, a service of the v2 protocol, with requests in this form.

        Its binary responses have this form too if `answers` is set, else the form of the v2 protocol.
        Calls of it raise CoreError(INVALID) if the content type gives a bad JSON size.
        """

        async def adapted(server: InferenceServer, call: HttpRequest) -> HttpResponse:
            call.headers = self._headers(call)
            return self._response_of(await infer(server, call))

        return adapted

    def largest(self, headers: Mapping[str, str], most_bytes: int, most_body: int) -> int:
        """Return how many bytes the body of an inference request may have.

        most_bytes   the limit without binary tensors: another content type, or a JSON size of 0
        most_body    the limit with binary tensors
        """
        _, start, size = headers.get("Content-Type", "").partition(self._start)
        return most_body if start and size.strip() != "0" else most_bytes

    def _headers(self, call: HttpRequest) -> Mapping[str, str]:
        """Return a request's headers without _IGNORED, and with the JSON size that its content type gives.

        Raises CoreError(INVALID) for a bad JSON size.
        """
        found: CIMultiDict[str] = CIMultiDict(call.headers.items())
        for name in _IGNORED:
            found.popall(name, None)
        if self._start in (kind := found.get("Content-Type", "")):
            found[JSON_SIZE] = str(self._size(kind, len(call.body)))
        return found

    def _size(self, kind: str, most: int) -> int:
        before, _, text = kind.partition(self._start)
        if before:
            raise invalid(
                f"expect MIME type for binary data starts with '{self._start}', got: {kind}"
            )
        number = _SIZE.match(text)
        if number is None:
            raise _wrong("Unable to parse inference header size", text)
        size = int(number[1][:12])  # more digits exceed every limit
        if abs(size) > _MOST:
            raise _wrong("Unable to parse inference header size, value is out of range", text)
        if not 0 <= size <= most:
            raise _wrong(f"inference header size should be in range (0, {most})", text)
        return size

    def _response_of(self, answer: HttpResponse) -> HttpResponse:
        if self._answers and (size := answer.headers.get(JSON_SIZE)) is not None:
            rest = {name: value for name, value in answer.headers.items() if name != JSON_SIZE}
            answer.headers = {**rest, "Content-Type": self._start + size}
        return answer


def _wrong(what: str, text: str) -> CoreError:
    return invalid(f"{what}, got: {text[:100]}")
