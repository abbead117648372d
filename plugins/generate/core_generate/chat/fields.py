"""Reads fields of JSON documents. An error names the field by its path, such as messages[0].content."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import orjson

from core.errors import CoreError, Kind
from core_generate.levels import excess_of

_MOST_SHOWN = 60  # characters of a wrong value, in an error
_MOST_OF_NAME = 100  # characters of a name of a FieldPath, in an error
_ENDS_OF_PATH = 300  # characters at each end of a FieldPath, in an error
_KINDS = {
    bool: "true or false",
    dict: "an object",
    float: "a number",
    int: "an integer",
    list: "a list",
    str: "a string",
}


class FieldPath:
    """The path of a field whose text is made only for an error: for documents of long names and many levels.

    path / "a" and path / 3 are the paths of a field, and of an item of a list. The text has at most 100
    characters of each name and 300 of each end.
    """

    __slots__ = ("_above", "_name")

    def __init__(self, name: str | int, above: FieldPath | None = None):
        self._name, self._above = name, above

    def __truediv__(self, name: str | int) -> FieldPath:
        return FieldPath(name, self)

    def __str__(self) -> str:
        parts: list[str] = []
        path = self
        while path._above is not None:
            parts.append(_step(path._name))
            path = path._above
        text = "".join([str(path._name), *reversed(parts)])
        if len(text) <= 2 * _ENDS_OF_PATH:
            return text
        return f"{text[:_ENDS_OF_PATH]}…{text[-_ENDS_OF_PATH:]}"


def _step(name: str | int) -> str:
    if isinstance(name, int):
        return f"[{name}]"
    return f".{name}" if len(name) <= _MOST_OF_NAME else f".{name[:_MOST_OF_NAME]}…"


class FieldError(CoreError):
    """INVALID error about a field of a document.

    field   its path, such as tools[1].function.name
    """

    def __init__(self, field: str | FieldPath, message: str):
        self.field = str(field)
        super().__init__(Kind.INVALID, f"{self.field}: {message}")


def shown(value: Any) -> str:
    """Return a value as JSON of at most 60 characters, for an error; a longer one is cut and ends with …."""
    try:
        text = orjson.dumps(value).decode()
    except (TypeError, ValueError):  # a lone surrogate, an integer of more than 64 bits
        text = excess_of(value) or repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


def check(value: Any, kind: type, path: str | FieldPath) -> Any:
    """Return `value` if it is of the given kind, else raise FieldError. true and false are no numbers.

    path   of the value, for the error. The kind float allows integers, too
    """
    fits = isinstance(value, (int, float) if kind is float else kind)
    if not fits or (isinstance(value, bool) and kind is not bool):
        raise FieldError(path, f"expected {_KINDS[kind]}, found {shown(value)}")
    return value


def check_text(value: Any, path: str | FieldPath) -> str:
    """Return `value` if it is a string that can be encoded as UTF-8, else raise FieldError."""
    text: str = check(value, str, path)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise FieldError(
            path, "the string has half of a surrogate pair, which is no text"
        ) from None
    return text


def parse(text: Any, path: str) -> Any:
    """Return the value of a string with JSON. Raises FieldError for other values, and too many levels."""
    try:
        value = orjson.loads(check_text(text, path))
    except orjson.JSONDecodeError as error:
        raise FieldError(path, f"the text is not JSON: {error}") from None
    if excess := excess_of(value):
        raise FieldError(path, excess)
    return value


def join(path: str, name: str) -> str:
    """Return the path of the field `name` of the object at `path`, which is "" for the document itself."""
    return f"{path}.{name}" if path else name


def get(document: Mapping[str, Any], name: str, kind: type, path: str) -> Any:
    """Return a field, None if it is absent or null. Raises FieldError if it is not of the kind.

    path   of the object that has the field, for the error
    """
    value = document.get(name)
    if value is None:
        return None
    where = join(path, name)
    return check_text(value, where) if kind is str else check(value, kind, where)


def need(document: Mapping[str, Any], name: str, kind: type, path: str) -> Any:
    """Return a field as `get` does. Raises FieldError also if it is absent or null."""
    value = get(document, name, kind, path)
    if value is None:
        raise FieldError(join(path, name), f"the field is required: {_KINDS[kind]}")
    return value


def check_choice(value: Any, choices: Collection[str], path: str | FieldPath) -> str:
    """Return `value` if it is one of the choices, else raise FieldError, which lists them."""
    if not isinstance(value, str) or value not in choices:
        raise FieldError(path, f"expected {listed(choices)}, found {shown(value)}")
    return value


def check_names(document: Mapping[str, Any], known: Collection[str], path: str) -> None:
    """Raise FieldError for the first field of the object at `path` that is not known and not null."""
    for name, value in document.items():
        if name not in known and value is not None:
            raise FieldError(
                join(path, shown(name)[1:-1]),
                f"the field is not supported here; known are {listed(sorted(known))}",
            )


def listed(names: Collection[str]) -> str:
    """Return names, at least one, as text: 'a', 'b' or 'c'."""
    quoted = [f"'{name}'" for name in names]
    return " or ".join(filter(None, [", ".join(quoted[:-1]), quoted[-1]]))
