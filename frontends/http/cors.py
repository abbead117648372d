"""Cors: which pages of other origins may use the server from a browser (--http-cors-origins).

request head ─► [Cors] ─► fields of its response, or the response to a preflight.

A listed origin may send credentials: cookies of a proxy, client certificates. "*" permits every other
origin without credentials. The response names an origin only if it is listed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from frontends.http.errors import refusal
from frontends.http.message import HttpResponse

ANY = "*"

_PREFLIGHT_METHOD = "Access-Control-Request-Method"
_PREFLIGHT_HEADERS = "Access-Control-Request-Headers"
# Headers of responses that a page may read, in addition to those that every page may (Content-Type, …).
_EXPOSED = {
    "Access-Control-Expose-Headers": "Endpoint-Load-Metrics, Inference-Header-Content-Length, "
    "Retry-After, WWW-Authenticate"
}
_MAX_AGE_S = 600  # for which a browser keeps the response to a preflight
_NAMES = re.compile(r"[\w!#$%&'*+.^`|~-]+(?:[ \t]*,[ \t]*[\w!#$%&'*+.^`|~-]+)*", re.ASCII)


def is_preflight(method: str, headers: Mapping[str, str]) -> bool:
    """Return whether a request is a preflight: a browser asks if a page may send another request.

    Browsers send a preflight without credentials.
    """
    return method == "OPTIONS" and "Origin" in headers and _PREFLIGHT_METHOD in headers


class Cors:
    """The origins whose pages may use one listener.

    origins   texts as browsers send them, such as https://a.example; ANY permits every origin
    """

    def __init__(self, origins: Collection[str]):
        self._listed = frozenset(origins) - {ANY}
        self._any = ANY in origins

    def lists(self, origin: str) -> bool:
        """Return whether an origin is listed by name. Pages of a listed origin may send credentials."""
        return origin in self._listed

    def fields(self, origin: str | None) -> dict[str, str]:
        """Return the CORS header fields for each response to a request; they may be empty.

        origin   value of the request's Origin header; None if the request has none
        """
        # The response differs by origin: a cache must not give it to a page of another one.
        vary = {"Vary": "Origin"} if self._listed else {}
        if origin is not None and origin in self._listed:
            credentials = {"Access-Control-Allow-Credentials": "true"}
            return {**vary, "Access-Control-Allow-Origin": origin, **credentials, **_EXPOSED}
        if self._any:
            return {**vary, "Access-Control-Allow-Origin": ANY, **_EXPOSED}
        return vary

    def preflight(self, headers: Mapping[str, str], methods: Collection[str]) -> HttpResponse:
        """Return the response to a preflight. The caller adds what `fields` returns.

        Its status is 204, or 403 for an origin that may not use the server, 404 without methods, 400 for
        malformed names of headers.
        headers   header fields of the preflight
        methods   HTTP methods that the path accepts; empty if the server does not have the path
        """
        origin = headers["Origin"]
        if not (self._any or origin in self._listed):
            return refusal(403, f"origin '{origin}' is none of --http-cors-origins")
        if not methods:
            return refusal(404, "Not Found")
        names = headers.get(_PREFLIGHT_HEADERS, "")
        if names and _NAMES.fullmatch(names) is None:
            return refusal(
                400, f"'{_PREFLIGHT_HEADERS}' must be names of headers, separated by commas"
            )
        allowed = {
            "Access-Control-Allow-Methods": ", ".join(sorted(methods)),
            "Access-Control-Max-Age": str(_MAX_AGE_S),
        }
        if names:
            allowed["Access-Control-Allow-Headers"] = names
        return HttpResponse(204, allowed)
