"""Document: reads the members of a request's JSON object, and names the member in every error."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import orjson
from core_generate.levels import MOST_LEVELS, excess_of

from core.errors import invalid
from core.tensor import Buffer
from frontend_openai.errors import wrong
from frontend_openai.off_loop import off_loop
from frontends.http.native.json_value import count_values

MOST_VALUES = 1_000_000  # values and keys of a request: a prompt of tokens has many


async def read_document(body: Buffer) -> Document:
    """Return the JSON object of a body. Event loop only; a large body is read on another thread.

    Raises CoreError(INVALID) if it is none, or has too many values or levels.
    """
    return Document(await off_loop(len(body), read_object, body))


def read_object(body: Buffer) -> dict[str, Any]:
    """Return the members of a body's JSON object. Any thread. Raises CoreError as `read_document`."""
    if (count := count_values(body)) > MOST_VALUES:
        raise invalid(f"the request has {count} JSON values; at most {MOST_VALUES} are accepted")
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise invalid(f"the body is not JSON: {error}") from None
    if type(found) is not dict:
        raise invalid("the body is no JSON object")
    data = bytes(body)
    may_be_deep = data.count(b"[") + data.count(b"{") > MOST_LEVELS
    if may_be_deep and (excess := excess_of(found)):
        raise invalid(f"the request has {excess}")
    return found


class Document:
    """The members of a JSON object. Every method takes a member out, and raises FieldError for a wrong one.

    path   in front of the names in errors, such as "stream_options."
    A member that is null counts as absent, as OpenAI's clients mean it.
    """

    def __init__(self, members: dict[str, Any], path: str = ""):
        self._members = members
        self._path = path

    def copy(self) -> Document:
        """Return a document with the members that were not taken, for work that may run twice."""
        return Document(dict(self._members), self._path)

    def take(self, name: str) -> Any:
        """Return any value, None for an absent one."""
        return self._members.pop(name, None)

    def text(self, name: str) -> str | None:
        value = self.take(name)
        if value is not None and type(value) is not str:
            raise self._wrong(name, "expected a string", value)
        return value

    def flag(self, name: str) -> bool | None:
        value = self.take(name)
        if value is not None and type(value) is not bool:
            raise self._wrong(name, "expected true or false", value)
        return value

    def integer(self, name: str, least: int, most: int) -> int | None:
        value = self.take(name)
        if value is None:
            return None
        if type(value) is float and value.is_integer():  # JavaScript has no other numbers
            value = int(value)
        if type(value) is not int:
            raise self._wrong(name, "expected an integer", value)
        if not least <= value <= most:
            raise wrong(self._path + name, f"{value} is not from {least} to {most}")
        return value

    def number(self, name: str, least: float, most: float) -> float | None:
        value = self.take(name)
        if value is None:
            return None
        if type(value) not in (int, float):
            raise self._wrong(name, "expected a number", value)
        if not least <= value <= most:
            raise wrong(self._path + name, f"{value} is not from {least:g} to {most:g}")
        return float(value)

    def texts(self, name: str, most: int) -> tuple[str, ...]:
        """Return a string, or a list of at most `most` strings, as a tuple."""
        value = self.take(name)
        if value is None:
            return ()
        found = value if type(value) is list else [value]
        if not all(type(each) is str for each in found):
            raise self._wrong(name, "expected a string or a list of strings", value)
        if len(found) > most:
            raise wrong(self._path + name, f"{len(found)} strings; at most {most} are accepted")
        return tuple(found)

    def inner(self, name: str) -> Document | None:
        """Return the members of a member that is an object."""
        value = self.take(name)
        if value is not None and type(value) is not dict:
            raise self._wrong(name, "expected an object", value)
        return None if value is None else Document(dict(value), f"{self._path}{name}.")

    def ignore(self, names: Collection[str]) -> None:
        """Drop members that change nothing here."""
        for name in names:
            self._members.pop(name, None)

    def end(self) -> None:
        """Raise FieldError for a member that was not taken and is not null."""
        for name, value in self._members.items():
            if value is not None:
                raise wrong(self._path + name, "this field is not supported", "unknown_parameter")

    def _wrong(self, name: str, expected: str, value: Any) -> Exception:
        return wrong(self._path + name, f"{expected}, found {_kind(value)}", "invalid_type")


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean"}
    return names.get(type(value), "a number")
