"""Bytes of a job → InferenceRequest, and its response → Result."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from multidict import CIMultiDict

from core.config import ModelConfig, Signature
from core.errors import CoreError, invalid
from core.request import InferenceRequest
from core.response import InferenceResponse
from core_jobs.job import REQUEST, Item, Job, Origin, Result
from core_jobs.offline.inputs.uploads import request_in
from frontends.http.background import LARGE_BYTES, begin, turn
from frontends.http.codec import form
from frontends.http.codec.limits import JSON_SIZE
from frontends.http.codec.parse import OutputForm, parse
from frontends.http.codec.render import render, render_at_once
from frontends.http.errors import error_answer
from frontends.http.message import HttpResponse
from frontends.http.options import HttpOptions
from frontends.shared.memory import MemoryControl
from frontends.shared.v2 import forward_header

if TYPE_CHECKING:
    from core.server import InferenceServer

_PARSING = ("content-type", JSON_SIZE.lower())
_NO_HEADERS: Mapping[str, str] = {}


def parsing_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers that say how to parse a body."""
    return {name: value for name, value in headers.items() if name.lower() in _PARSING}


class JobReader:
    """Reads and writes the messages of jobs as the HTTP port of the server does. Event loop only."""

    def __init__(self, server: InferenceServer):
        self._server = server
        self._regions = MemoryControl.of(server).regions
        options = HttpOptions.of(server.options)
        self._most_bytes = options.http_max_input_size
        self._forwarded = options.http_header_forward_pattern

    def kept_headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Return the headers of a submission that its request needs when it runs."""
        forwarded = {name: value for name, value in headers.items() if self._is_forwarded(name)}
        return {**parsing_headers(headers), **forwarded}

    def _is_forwarded(self, name: str) -> bool:
        return bool(self._forwarded) and bool(_compiled(self._forwarded).search(name))

    async def read(self, job: Job, item: Item) -> tuple[InferenceRequest, OutputForm]:
        """Return the request of an item, with the lowest priority of its model and the deadline of its job.

        Raises CoreError: INVALID for a malformed request, and what a model raises that does not serve.
        """
        models = self._server.models
        signature = models.signature(job.model, job.version)
        if item.origin is not None:
            request, wanted = await self._of_file(job, item.body, item.origin, signature)
        else:
            request, wanted = await self.parsed(
                job.kind, job.model, job.version, signature, job.headers, item.body
            )
        request.priority = lowest_priority(models.config(job.model, job.version))
        if job.deadline_s is not None:
            left_s = job.deadline_s - time.time()
            request.deadline_ns = time.monotonic_ns() + int(max(0.0, left_s) * 1e9)
        return request, wanted

    async def parsed(
        self,
        kind: str,
        model: str,
        version: int,
        signature: Signature,
        headers: Mapping[str, str],
        body: bytes,
    ) -> tuple[InferenceRequest, OutputForm]:
        """Return the request in a body. Raises CoreError(INVALID) also for what a job cannot do."""
        fields: CIMultiDict[str] = CIMultiDict(headers)
        path = (model, version, signature)

        def read() -> tuple[InferenceRequest, OutputForm]:
            if form.is_form(fields):
                return form.read(*path, fields, body, self._most_bytes), OutputForm()
            return parse(*path, fields, body, self._most_bytes, self._regions)

        if len(body) < LARGE_BYTES:
            request, wanted = read()
        else:
            async with turn():
                request, wanted = await begin(read)
        if request.shared:
            raise invalid(
                "a job cannot use shared memory: the region may be gone when it runs; send the data"
            )
        is_text = kind != REQUEST or signature.decoupled
        if is_text and (wanted.default or any(wanted.listed.values())):
            raise invalid(
                "the results of a batch, and of a model with many responses, are JSON: do not ask for "
                "binary outputs"
            )
        self._forward(headers, request)
        return request, wanted

    async def _of_file(
        self, job: Job, data: bytes, origin: Origin, signature: Signature
    ) -> tuple[InferenceRequest, OutputForm]:
        """Return the request in a part of an uploaded file. Raises CoreError(INVALID) if it does not fit."""
        if len(data) < LARGE_BYTES:
            found = request_in(data, origin, signature)
        else:
            async with turn():
                found = await begin(request_in, data, origin, signature)
        request = InferenceRequest(job.model, found.inputs, model_version=job.version)
        request.id = found.id
        request.parameters.update(found.parameters)
        self._forward(job.headers, request)
        return request, OutputForm()

    def _forward(self, headers: Mapping[str, str], request: InferenceRequest) -> None:
        for name, value in headers.items():
            if self._is_forwarded(name):
                forward_header(request, name, value)


async def result_of(
    job: Job, index: int, responses: list[InferenceResponse], wanted: OutputForm, *, many: bool
) -> Result:
    """Return the result of a request that has been answered.

    many   whether the model is decoupled: the body is then {"responses": […]}
    """
    answers = [await _rendered(each, wanted) for each in responses]
    if many:
        body = b'{"responses":[%b]}' % b",".join(bytes(each.body) for each in answers)
        headers: Mapping[str, str] = {"Content-Type": "application/json"}
    else:
        body, headers = bytes(answers[0].body), answers[0].headers
    return Result(index, 200, headers if job.kind == REQUEST else _NO_HEADERS, body)


def failure(job: Job, index: int, error: CoreError) -> Result:
    """Return the result of a request that has failed."""
    answer = error_answer(error)
    headers = answer.headers if job.kind == REQUEST else _NO_HEADERS
    return Result(index, answer.status, headers, answer.body)


def lowest_priority(config: ModelConfig) -> int:
    """Return the lowest priority level of a model; 0, the only one, for a model without levels."""
    levels: int = config.dynamic_batching.priority_levels
    return levels


async def _rendered(response: InferenceResponse, wanted: OutputForm) -> HttpResponse:
    found = render_at_once(response, wanted)
    return await begin(render, response, wanted) if found is None else found


@lru_cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)
