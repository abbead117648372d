"""ChatClient: asks a server's OpenAI routes for models and answers, with the standard library alone."""

from __future__ import annotations

import http.client
import json
import re
import ssl
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from core.errors import CoreError, internal, invalid, unavailable

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_TIMEOUT_S = 600  # without any byte; a model may wait in a queue before its first token


def printable(text: str) -> str:
    """Return `text` without control characters, which could change the terminal; lines and tabs stay."""
    return _CONTROLS.sub("", text)


class ChatClient:
    """Sends requests to one server, each over a connection of its own. Not thread-safe.

    model    name of the model that answers
    fields   other fields of each request, such as max_tokens
    """

    def __init__(self, url: str, token: str, ca_file: str, fields: Mapping[str, Any]):
        self.model = ""
        self._url = url
        self._fields = fields
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._parts = urlsplit(url)
        if self._parts.scheme not in ("http", "https") or not self._parts.hostname:
            raise invalid(f"'{url}' is no address of a server; expected http://HOST:PORT")
        self._tls = None
        if self._parts.scheme == "https":
            try:
                self._tls = ssl.create_default_context(cafile=ca_file or None)
            except OSError as error:
                raise invalid(f"cannot read the certificates in '{ca_file}': {error}") from None

    def models(self) -> list[str]:
        """Return the names of the models that generate text. Raises CoreError."""
        connection, response = self._send("GET", "/v1/models", None)
        try:
            return [str(each["id"]) for each in json.loads(response.read())["data"]]
        except (ValueError, LookupError, TypeError, OSError, http.client.HTTPException):
            raise invalid(
                f"the server at {self._url} does not list models as OpenAI does; install the routes of "
                "OpenAI there"
            ) from None
        finally:
            connection.close()

    def pieces(self, messages: Sequence[Mapping[str, str]]) -> Iterator[str]:
        """Yield the answer to a conversation in pieces as they arrive.

        If the iteration ends early, the connection is closed, which cancels the request.
        Raises CoreError for an error of the server, and if the connection ends before the answer.
        """
        body = {**self._fields, "model": self.model, "messages": list(messages), "stream": True}
        connection, response = self._send("POST", "/v1/chat/completions", json.dumps(body))
        try:
            yield from _pieces(response)
        except (OSError, http.client.HTTPException) as error:
            raise unavailable(f"the answer broke off: {error or type(error).__name__}") from None
        finally:
            connection.close()

    def _send(
        self, method: str, path: str, body: str | None
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """Return a connection and its response with status 200. Raises CoreError, and leaves none open."""
        parts, at = self._parts, (str(self._parts.hostname), self._parts.port)
        connection = (
            http.client.HTTPSConnection(*at, timeout=_TIMEOUT_S, context=self._tls)
            if self._tls
            else http.client.HTTPConnection(*at, timeout=_TIMEOUT_S)
        )
        headers = {**self._headers, "Content-Type": "application/json"}
        try:
            connection.request(method, parts.path.rstrip("/") + path, body, headers)
            response = connection.getresponse()
            if response.status != 200:
                raise _refused(self._url, path, response)
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise unavailable(
                f"no server answers at {self._url} ({error or type(error).__name__}); "
                "`core serve` starts one, --url names another"
            ) from None
        except BaseException:
            connection.close()
            raise
        return connection, response


def _refused(url: str, path: str, response: http.client.HTTPResponse) -> CoreError:
    """Return the error for a response with another status than 200."""
    data = response.read(65536)
    try:
        text = str(json.loads(data)["error"]["message"])
    except (ValueError, LookupError, TypeError):
        if response.status == 404:
            return invalid(
                f"the server at {url} has no {path}; install the routes of OpenAI there: "
                "pip install --find-links wheels 'core[openai]'"
            )
        text = f"{response.status} {response.reason}"
    return invalid(printable(text))


def _pieces(response: http.client.HTTPResponse) -> Iterator[str]:
    """Yield the texts of a stream of events. Raises CoreError for an event that is an error."""
    for line in response:
        if not line.startswith(b"data: "):
            continue
        data = line[6:].strip()
        if data == b"[DONE]":
            return
        try:
            event = json.loads(data)
            if "error" in event:
                raise internal(printable(str(event["error"]["message"])))
            for choice in event["choices"]:
                if text := choice["delta"].get("content"):
                    yield str(text)
        except (ValueError, LookupError, TypeError, AttributeError):
            raise internal(f"the server sent an event of another form: {data[:200]!r}") from None
    raise unavailable("the answer broke off: the server closed the connection")
