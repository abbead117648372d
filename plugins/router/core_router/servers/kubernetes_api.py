"""KubernetesApi: requests to the API of Kubernetes as the service account of the router's pod.

service account, environment ─► [KubernetesApi] ─► list, watch ─► KubernetesService
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import orjson

from core.errors import invalid

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where Kubernetes puts token and ca.crt of a pod's service account."""

_MOST_BYTES = 32 << 20  # of a list, and of one event
_CONNECT_S = 5.0
_ANSWER_S = 30.0

Object = Mapping[str, Any]


class ApiError(OSError):
    """The API has refused a request.

    status   of HTTP, or of an event; 410: the version of a watch is too old
    """

    def __init__(self, status: int, text: str):
        super().__init__(text)
        self.status = status


class KubernetesApi:
    """The API of one cluster. Requests on the event loop only.

    url       start of its URLs; "" for that of the cluster in which the process runs
    account   folder with `token` and `ca.crt`, which are read for each request: Kubernetes renews them
    """

    def __init__(self, url: str = "", account: Path = ACCOUNT):
        self.url = url.rstrip("/") or _of_the_cluster()
        self._account = account

    def check(self) -> None:
        """Raise CoreError(INVALID) if there is no API, or no account."""
        if not self.url:
            raise invalid(
                "--servers has kubernetes://…, but this process does not run in a pod: the environment has "
                "no KUBERNETES_SERVICE_HOST; name the API by --kubernetes-api=https://host:port"
            )
        if not self.url.startswith(("https://", "http://")):
            raise invalid(f"--kubernetes-api '{self.url}' is no URL; write https://host:port")
        for name in ("token", "ca.crt") if self.url.startswith("https://") else ():
            try:
                self._read(name)
            except OSError as error:
                raise invalid(
                    f"{error}; Kubernetes mounts it into pods with automountServiceAccountToken, and "
                    "--kubernetes-account names another folder"
                ) from None

    async def list(self, path: str, query: Mapping[str, str]) -> Object:
        """Return an object of the API. Raises OSError."""
        async with self._get(path, query, aiohttp.ClientTimeout(_ANSWER_S)) as response:
            data = b""
            async for piece in response.content.iter_any():
                data += piece
                _check_size(data)
            return _json(data)

    async def watch(
        self, path: str, query: Mapping[str, str], silent_s: float
    ) -> AsyncGenerator[Object, None]:
        """Yield the events of a watch until the API ends it. Raises OSError.

        silent_s   seconds without a byte after which the connection counts as lost
        """
        timeout = aiohttp.ClientTimeout(None, sock_connect=_CONNECT_S, sock_read=silent_s)
        async with self._get(path, {**query, "watch": "1"}, timeout) as response:
            rest = b""
            async for piece in response.content.iter_any():
                *lines, rest = (rest + piece).split(b"\n")
                _check_size(rest)
                for each in filter(None, lines):
                    yield _json(each)

    @asynccontextmanager
    async def _get(
        self, path: str, query: Mapping[str, str], timeout: aiohttp.ClientTimeout
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        secure: dict[str, Any] = {}
        headers = {"Accept": "application/json"}
        if self.url.startswith("https://"):
            headers["Authorization"] = f"Bearer {self._read('token').strip()}"
            secure["ssl"] = self._context()
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout, headers=headers) as session,
                session.get(
                    self.url + path, params=query, allow_redirects=False, **secure
                ) as response,
            ):
                if response.status != 200:
                    raise ApiError(response.status, await _refusal(response))
                yield response
        except aiohttp.ClientError as error:
            raise OSError(f"{self.url}: {error}") from None
        except asyncio.TimeoutError:
            raise OSError(f"{self.url}: no answer in time") from None

    def _context(self) -> ssl.SSLContext:
        path = self._account / "ca.crt"
        text = self._read("ca.crt")
        try:
            if not text.strip():
                raise ValueError("it is empty")  # which would stand for those of the system
            return ssl.create_default_context(cadata=text)
        except (ssl.SSLError, ValueError) as error:
            raise OSError(f"'{path}' holds no certificates: {error}") from None

    def _read(self, name: str) -> str:
        path = self._account / name
        try:
            return path.read_text(encoding="ascii")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise OSError(f"'{path}' cannot be read: {reason}") from None


def _of_the_cluster() -> str:
    """Return the URL that Kubernetes gives its pods; "" elsewhere."""
    host = os.environ.get("KUBERNETES_SERVICE_HOST", "")
    port = os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        return ""
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


async def _refusal(response: aiohttp.ClientResponse) -> str:
    """Return what the API says against a request, with what to do about it."""
    data = await response.content.read(64 * 1024)
    try:
        said = str(orjson.loads(data)["message"])
    except (ValueError, KeyError, TypeError):
        said = data[:200].decode("utf-8", "replace").strip()
    text = f"the API of Kubernetes answers {response.status}: {said or response.reason}"
    if response.status in (401, 403):
        return f"{text}; the router's service account needs `list` and `watch` of endpointslices"
    return text


def _check_size(data: bytes) -> None:
    if len(data) > _MOST_BYTES:
        raise OSError(f"an answer of the API of Kubernetes is larger than {_MOST_BYTES} bytes")


def _json(data: bytes) -> Object:
    try:
        found = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise OSError(f"an answer of the API of Kubernetes is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise OSError("an answer of the API of Kubernetes is no object")
    return found
