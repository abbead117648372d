"""Errors as responses: the status of each kind of error, and the body `{"error": text}`."""

from __future__ import annotations

import logging

import orjson

from core.errors import CoreError, Kind, MemoryExhausted
from frontends.http.message import JSON_HEADERS, HttpResponse
from frontends.shared.interceptors import refusal_headers

logger = logging.getLogger("core")

STATUS = {
    Kind.UNKNOWN: 400,
    Kind.INTERNAL: 500,
    Kind.NOT_FOUND: 404,
    Kind.INVALID: 400,
    Kind.UNAVAILABLE: 503,
    Kind.UNSUPPORTED: 501,
    Kind.ALREADY_EXISTS: 400,
    Kind.CANCELLED: 400,
    Kind.UNAUTHENTICATED: 401,
    Kind.FORBIDDEN: 403,
    Kind.EXHAUSTED: 429,
    Kind.DEADLINE_EXCEEDED: 504,
}


LONGEST_TEXT = 64 * 1024  # characters


def status_of(error: CoreError) -> int:
    if isinstance(error, MemoryExhausted):
        return 503
    return STATUS[error.kind]


def error_answer(error: CoreError) -> HttpResponse:
    answer = refusal(status_of(error), error.message)
    if more := refusal_headers(error):
        answer.headers = {**answer.headers, **more}
    return answer


def refusal(status: int, text: str) -> HttpResponse:
    """Return the response with that status and text.

    text   may hold anything; lone surrogates, such as from a path that is not UTF-8, become escapes. A very
           long text is cut, since clients choose some names.
    """
    if len(text) > LONGEST_TEXT:
        text = f"{text[:LONGEST_TEXT]} [...]"
    try:
        body = orjson.dumps({"error": text})
    except orjson.JSONEncodeError:
        body = orjson.dumps({"error": text.encode("utf-8", "backslashreplace").decode()})
    return HttpResponse(status, JSON_HEADERS, body)


def unexpected(what: str, id: str = "") -> HttpResponse:
    """Log the exception that is being handled and that no service expected; return a response, status 500.

    what   the request, for the log
    id     the client's id of the request, "" for none
    """
    logger.exception("[request id: %s] HTTP: %s failed", id or "<id_unknown>", what)
    return refusal(500, "unexpected error in the server; its log has the details")
