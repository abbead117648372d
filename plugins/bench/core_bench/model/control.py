"""Control: questions to a server before and after its load. HttpControl asks over HTTP."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from collections.abc import Mapping
from typing import Any, Protocol

from core.errors import CoreError, Kind, internal, unavailable
from core_bench.model.address import Address, model_path
from core_bench.model.description import ModelInfo, model_info, unknown_model
from core_bench.plan import Side, Tls

_TIMEOUT_S = 30


class Control(Protocol):
    """Asks a server. Each method raises CoreError if it does not answer, or refuses."""

    def describe(self, model: str, version: str) -> ModelInfo: ...

    def statistics(self, model: str, version: str) -> list[Mapping[str, Any]]:
        """Return `model_stats` of the statistics extension; [] if the server has none."""

    def register(self, name: str, key: str, size: int) -> None:
        """Register a region of system shared memory."""

    def unregister(self, name: str) -> None: ...

    def close(self) -> None: ...


def tls_context(tls: Tls) -> ssl.SSLContext:
    """Return the context of a client. Raises CoreError for files that cannot be read."""
    try:
        context = ssl.create_default_context(cafile=tls.ca_file or None)
        if tls.certificate:
            context.load_cert_chain(tls.certificate, tls.key or None)
    except OSError as error:
        raise CoreError(Kind.INVALID, f"cannot read the certificates: {error}") from None
    context.check_hostname = tls.verify and tls.names_host
    if not tls.verify:
        context.verify_mode = ssl.CERT_NONE
    return context


class _UnixConnection(http.client.HTTPConnection):
    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.host)


class HttpControl:
    """Each question has a connection of its own. `openai`: the server may have no v2 protocol."""

    def __init__(self, side: Side, address: Address):
        self._address = address
        self._headers = dict(side.headers)
        self._openai = side.kind == "openai"
        self._tls = tls_context(side.tls) if address.tls else None

    def describe(self, model: str, version: str) -> ModelInfo:
        if self._openai:
            status, found = self.ask("GET", "/v1/models")
            listed = found.get("data") if isinstance(found, dict) else None
            if status != 200 or not isinstance(listed, list):
                text = error_of(found) or f"status {status}"
                raise CoreError(
                    Kind.INVALID,
                    f"the server {self._address.shown} does not list its models at /v1/models: {text}",
                )
            names = [str(each["id"]) for each in listed]
            if model not in names:
                raise unknown_model(model, names, self._address.shown)
            return ModelInfo(model, "")
        path = model_path(model, version)
        status, metadata = self.ask("GET", path)
        if status != 200:
            raise self._refused(model, version, status, metadata)
        status, config = self.ask("GET", f"{path}/config")
        return model_info(metadata, config if status == 200 else None)

    def statistics(self, model: str, version: str) -> list[Mapping[str, Any]]:
        try:
            status, found = self.ask("GET", f"{model_path(model, version)}/stats")
        except CoreError:
            return []
        return list(found.get("model_stats", ())) if status == 200 else []

    def register(self, name: str, key: str, size: int) -> None:
        body = {"key": key, "offset": 0, "byte_size": size}
        self._memory(f"region/{name}/register", body)

    def unregister(self, name: str) -> None:
        self._memory(f"region/{name}/unregister", {})

    def close(self) -> None:
        """Nothing is open between questions."""

    def _memory(self, what: str, body: Mapping[str, Any]) -> None:
        status, found = self.ask("POST", f"/v2/systemsharedmemory/{what}", body)
        if status != 200:
            raise memory_refused(self._address.shown, error_of(found) or str(status))

    def _refused(self, model: str, version: str, status: int, answer: Any) -> CoreError:
        """Return the error for a model without metadata: unknown, not ready, or forbidden."""
        text = error_of(answer) or f"status {status}"
        if status in (400, 404):
            index_status, index = self.ask("POST", "/v2/repository/index", {})
            if index_status == 200 and isinstance(index, list):
                names = sorted({str(each.get("name")) for each in index})
                if model not in names:
                    return unknown_model(model, names, self._address.shown)
                text += "; " + "; ".join(
                    f"version {each.get('version') or '?'} is {each.get('state') or 'not loaded'}"
                    f"{': ' + each['reason'] if each.get('reason') else ''}"
                    for each in index
                    if each.get("name") == model
                )
        wanted = f" version {version}" if version else ""
        return CoreError(
            Kind.INVALID,
            f"the server {self._address.shown} refuses model '{model}'{wanted}: {text}",
        )

    def ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        timeout_s: float = _TIMEOUT_S,
    ) -> tuple[int, Any]:
        """Return status and JSON of an answer; {} for other answers. Raises CoreError if there is none."""
        connection = self._connection(timeout_s)
        data = None if body is None else json.dumps(body)
        try:
            connection.request(method, self._address.prefix + path, data, self._headers)
            answer = connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise not_reached(self._address, error) from None
        finally:
            connection.close()
        try:
            return answer.status, json.loads(text or b"{}")
        except ValueError:
            if answer.status == 200:
                raise internal(f"{self._address.shown}{path} is no JSON: {text[:100]!r}") from None
            return answer.status, {}

    def _connection(self, timeout_s: float) -> http.client.HTTPConnection:
        if not self._address.port:
            return _UnixConnection(self._address.host, timeout=timeout_s)
        at = (self._address.host, self._address.port)
        if self._tls:
            return http.client.HTTPSConnection(*at, timeout=timeout_s, context=self._tls)
        return http.client.HTTPConnection(*at, timeout=timeout_s)


def not_reached(address: Address, error: object) -> CoreError:
    return unavailable(
        f"no server answers at {address.shown} ({error or type(error).__name__}); "
        "`core serve` starts one, -u names another"
    )


def memory_refused(where: str, text: str) -> CoreError:
    hint = "" if "allow" not in text else "; start the server with --allow-client-shm=true"
    return CoreError(Kind.INVALID, f"the server {where} refuses shared memory: {text}{hint}")


def error_of(answer: Any) -> str:
    """Return the text of an error's JSON, of the v2 protocol or OpenAI's; "" for something else."""
    found = answer.get("error", "") if isinstance(answer, dict) else ""
    if isinstance(found, dict):
        found = found.get("message", "")
    return str(found)
