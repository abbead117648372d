"""OverHttp: a server at a URL, with the v2 protocol over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import aiohttp
import orjson

from core import dtypes
from core.config import Signature
from core.errors import CoreError, Kind, invalid, unavailable
from core.request import NEWEST
from core.tensor import Tensor
from core_jobs.offline.item import Request, Responses
from core_jobs.offline.targets.target import signature_of

_SIZE = "Inference-Header-Content-Length"
_KINDS = {
    400: Kind.INVALID,
    401: Kind.UNAUTHENTICATED,
    403: Kind.FORBIDDEN,
    404: Kind.NOT_FOUND,
    429: Kind.EXHAUSTED,
    501: Kind.UNSUPPORTED,
    503: Kind.UNAVAILABLE,
    504: Kind.DEADLINE_EXCEEDED,
}


class OverHttp:
    """A model of a server that runs already (target.Target).

    url        http://host:port, https://host:port or host:port
    headers    of all calls, such as a token
    timeout_s  for one response
    """

    def __init__(
        self, model: str, version: int, url: str, headers: Mapping[str, str], timeout_s: float
    ):
        self._base = url.rstrip("/") if "://" in url else f"http://{url.rstrip('/')}"
        suffix = "" if version == NEWEST else f"/versions/{version}"
        self._path = f"/v2/models/{quote(model, safe='')}{suffix}"
        self._model = model
        self._version = version
        self._headers = dict(headers)
        self._timeout_s = timeout_s
        self._session: aiohttp.ClientSession | None = None

    async def open(self) -> Signature:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            headers=self._headers,
            timeout=aiohttp.ClientTimeout(total=self._timeout_s),
        )
        body, _ = await self._call("GET", "/config", None, {})
        found = signature_of(orjson.loads(body), self._version)
        if found.decoupled:
            raise invalid(
                f"model '{self._model}' sends many responses, which HTTP's infer does not have; run it with "
                "--model-repository"
            )
        return found

    async def ask(self, request: Request) -> Responses:
        text, parts = _encoded(request)
        headers = {_SIZE: str(len(text)), "Content-Type": "application/octet-stream"}
        body, size = await self._call("POST", "/infer", b"".join((text, *parts)), headers)
        return [_decoded(body, size)]

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def _call(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> tuple[bytes, int]:
        """Return the body of an answer, and the size of the JSON at its beginning."""
        assert self._session is not None
        url = f"{self._base}{self._path}{path}"
        try:
            async with self._session.request(method, url, data=body, headers=headers) as answer:
                found = await answer.read()
                if answer.status != 200:
                    raise _error(answer.status, found)
                return found, int(answer.headers.get(_SIZE, len(found)))
        except asyncio.TimeoutError:
            raise CoreError(
                Kind.DEADLINE_EXCEEDED, f"no answer of '{self._base}' within {self._timeout_s:g} s"
            ) from None
        except (aiohttp.ClientError, OSError) as error:
            # Inference may be repeated: the caller decides how often.
            raise unavailable(f"'{self._base}' does not answer: {error}") from None


def _encoded(request: Request) -> tuple[bytes, list[Any]]:
    inputs, parts = [], []
    for name, tensor in request.inputs.items():
        data = memoryview(tensor.raw)
        parts.append(data)
        row = {"name": name, "datatype": tensor.dtype.name, "shape": list(tensor.shape)}
        inputs.append({**row, "parameters": {"binary_data_size": data.nbytes}})
    document: dict[str, Any] = {"inputs": inputs}
    document["parameters"] = {**request.parameters, "binary_data_output": True}
    if request.id:
        document["id"] = request.id
    return orjson.dumps(document), parts


def _decoded(body: bytes, size: int) -> list[Tensor]:
    document = orjson.loads(body[:size])
    view, at = memoryview(body), size
    found = []
    for each in document["outputs"]:
        dtype = dtypes.BY_NAME[each["datatype"]]
        length = (each.get("parameters") or {}).get("binary_data_size")
        if length is None:
            raise invalid(f"output '{each['name']}' came as JSON; expected binary data")
        found.append(Tensor(each["name"], dtype, tuple(each["shape"]), view[at : at + length]))
        at += length
    return found


def _error(status: int, body: bytes) -> CoreError:
    try:
        text = str(orjson.loads(body)["error"])
    except (ValueError, KeyError, TypeError):
        text = body[:200].decode("utf-8", "replace")
    return CoreError(_KINDS.get(status, Kind.INTERNAL), text or f"status {status}")
