"""Errors in OpenAI's form: {"error": {"message", "type", "param", "code"}}.

CoreError ─► [service] ─► HttpResponse;  refusals of the port {"error": text} ─► [in_form] ─► HttpResponse
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import orjson
from core_generate.errors import PromptTooLong, StructureRefused

from core.errors import CoreError, Kind
from frontends.http.errors import LONGEST_TEXT, error_answer
from frontends.http.message import HttpResponse

_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}
_LONGEST_PARAM = 300  # characters
_CODES = {404: "not_found", 429: "rate_limit_exceeded"}


class FieldError(CoreError):
    """An error about one field of a request.

    param   path of the field, such as "messages[0].content"
    code    word for programs, None for none
    """

    def __init__(
        self, param: str, message: str, code: str | None = None, kind: Kind = Kind.INVALID
    ):
        super().__init__(kind, message)
        self.param = param
        self.code = code


def wrong(param: str, found: str, code: str | None = None) -> FieldError:
    """Return the error for a field: its path, and what is wrong with it."""
    return FieldError(param, f"{param}: {found}", code)


@contextmanager
def naming(prompt: str, structure: str) -> Iterator[None]:
    """Within it, a refusal of an engine becomes a FieldError; others pass unchanged.

    prompt      path of the field with the prompt
    structure   path of the field with what the text must match, "" for none
    """
    try:
        yield
    except PromptTooLong as error:
        raise FieldError(prompt, error.message, "context_length_exceeded") from None
    except StructureRefused as error:
        raise FieldError(structure, error.message) from None


def members_of(error: CoreError, status: int) -> dict[str, Any]:
    """Return the object that describes an error."""
    # `field` is the name in errors of core_generate.chat.
    param = getattr(error, "param", None) or getattr(error, "field", None)
    return _members(status, error.message, param, getattr(error, "code", None))


def refusal_of(error: CoreError) -> HttpResponse:
    """Return the response for an error."""
    answer = error_answer(error)
    answer.body = orjson.dumps({"error": encodable(members_of(error, answer.status))})
    return answer


def in_form(answer: HttpResponse) -> HttpResponse:
    """Return a refusal of the port, {"error": text}, in OpenAI's form; another response unchanged."""
    try:
        found = orjson.loads(answer.body)
    except orjson.JSONDecodeError:
        return answer
    text = found.get("error") if isinstance(found, dict) else None
    if isinstance(text, str):
        answer.body = orjson.dumps({"error": _members(answer.status, text)})
    return answer


def _members(
    status: int, text: str, param: str | None = None, code: str | None = None
) -> dict[str, Any]:
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    if param is not None and len(param) > _LONGEST_PARAM:
        param = f"{param[:_LONGEST_PARAM]}…"
    return {
        "message": shortened(text),
        "type": kind,
        "param": param,
        "code": code or _CODES.get(status),
    }


def shortened(text: str) -> str:
    """Return the text of an error; a very long one is cut, since clients choose some names."""
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]} [...]"


def encodable_error(error: CoreError) -> CoreError:
    """Return an error whose message is short and has no lone surrogate, such as a model's text may have."""
    message = shortened(error.message).encode("utf-8", "backslashreplace").decode()
    return error if message == error.message else CoreError(error.kind, message)


def encodable(members: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members without lone surrogates, which names of a request may have."""
    return {
        name: value.encode("utf-8", "backslashreplace").decode()
        if isinstance(value, str)
        else value
        for name, value in members.items()
    }
