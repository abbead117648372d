"""Tree of the fields of a text in protobuf's text format, with the offsets of each.

It knows the grammar, not the fields: misspelt names are in it. A text with an error gives the fields before
it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"(?:\s|#[^\n]*(?:\n|\Z))*"  # one way to match: a comment ends with its line
    r"(?:(?P<string>\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*')"
    r"|(?P<word>[-+]?[\w.]+(?:[-+](?<=[eE][-+])\w+)?)"
    r"|(?P<sign>[{}<>\[\]:,;/-]))"
)
BYTE_ORDER_MARK = "\ufeff"  # some editors begin a file with it; the text behind it is read
_CLOSING = {"{": "}", "<": ">"}
_DEEPEST = 100
_ESCAPE = re.compile(rb"\\(?:([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|(.))", re.DOTALL)
_ESCAPED = {
    b"n": b"\n",
    b"t": b"\t",
    b"r": b"\r",
    b"a": b"\a",
    b"b": b"\b",
    b"f": b"\f",
    b"v": b"\v",
}


@dataclass
class FieldValue:
    """One value of a field. A list `[a, b]` gives an entry for each value, an empty list none.

    name             of the field
    name_start       offset of the field's name
    start, end       offsets of the value; of a message with its braces
    whole_end        offset behind the value; of a value in a list, behind the list's `]`
    fields           of a message; None for a scalar
    text             of a scalar, as it is written
    """

    name: str
    name_start: int
    start: int
    end: int = 0
    whole_end: int = 0
    fields: list[FieldValue] | None = None
    text: str = ""

    @property
    def string(self) -> str:
        """The value of a scalar, without quotes and escapes."""
        return unquoted(self.text)


@dataclass
class Tree:
    """The fields of a text; `fields` are those of the outermost message."""

    text: str
    fields: list[FieldValue] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._lines = [0, *(each.end() for each in re.finditer("\n", self.text))]

    def line_and_column(self, offset: int) -> tuple[int, int]:
        """Return the line and column of an offset, both from 1."""
        line = bisect_right(self._lines, offset)
        return line, offset - self._lines[line - 1] + 1

    def offset(self, line: int, column: int) -> int:
        """Return the offset of a line and column, both from 1."""
        start = self._lines[min(line, len(self._lines)) - 1]
        return min(start + column - 1, len(self.text))

    def walk(self) -> Iterator[tuple[FieldValue, list[FieldValue]]]:
        """Yield each entry with the entries above it, outermost first."""
        waiting: list[tuple[FieldValue, list[FieldValue]]] = [
            (each, []) for each in reversed(self.fields)
        ]
        while waiting:
            entry, above = waiting.pop()
            yield entry, above
            waiting.extend((each, [*above, entry]) for each in reversed(entry.fields or ()))


def tree_of(text: str) -> Tree:
    """Return the tree of a text."""
    tree = Tree(text)
    _TextReader(text).message(tree.fields, "", 0)
    return tree


def unquoted(text: str) -> str:
    """Return the value of string literals, such as "a" 'b'; other text as it is."""
    if text[:1] not in ("'", '"'):
        return text
    parts = re.findall(r"\"((?:[^\"\\\n]|\\.)*)\"|'((?:[^'\\\n]|\\.)*)'", text)
    joined = "".join(one or other for one, other in parts).encode()
    return _ESCAPE.sub(_unescaped, joined).decode(errors="replace")


def _unescaped(match: re.Match[bytes]) -> bytes:
    """Return the byte of a number, of which several may be one character of UTF-8, or a control character."""
    if match[1]:
        return bytes([int(match[1], 8) & 0xFF])
    if match[2]:
        return bytes([int(match[2], 16)])
    return _ESCAPED.get(match[3], match[3])


def _entry(name: str, start: int) -> FieldValue:
    """Return an entry whose value is not read yet."""
    end = start + len(name)
    return FieldValue(name, start, end, end, end)


class _TextReader:
    """Reads tokens from left to right. `message`, `_field`, `_value` return whether the grammar is right.

    A character of no token ends the text: what is before it is read.
    """

    def __init__(self, text: str):
        self._text = text
        self._at = 1 if text.startswith(BYTE_ORDER_MARK) else 0
        self._last_end = 0
        self._next: tuple[str, str, int, int] | None = None
        self._advance()

    def _advance(self) -> None:
        match = _TOKEN.match(self._text, self._at)
        if match is None or match.lastgroup is None:
            self._next = None
            return
        kind = match.lastgroup
        self._at = match.end()
        self._next = kind, match[kind], match.start(kind), match.end(kind)

    def _take(self) -> tuple[str, str, int, int]:
        assert self._next is not None
        taken = self._next
        self._last_end = taken[3]
        self._advance()
        return taken

    def _sign(self, signs: str) -> bool:
        """Take the next token if it is one of these signs; return whether it is."""
        if self._next is not None and self._next[0] == "sign" and self._next[1] in signs:
            self._take()
            return True
        return False

    def message(self, fields: list[FieldValue], closing: str, depth: int) -> bool:
        """Append fields up to the sign `closing`, which is not taken, or to the end of the text for "".

        Return False for wrong syntax, and for messages deeper than _DEEPEST; the fields before it stay.
        """
        if depth > _DEEPEST:
            return False
        while self._next is not None:
            if self._next[0] == "sign":
                return self._next[1] == closing
            if self._next[0] == "string":
                return False
            _, name, start, _ = self._take()
            if not self._field(fields, name, start, depth):
                return False
            self._sign(",;")
        return not closing

    def _field(self, fields: list[FieldValue], name: str, start: int, depth: int) -> bool:
        self._sign(":")
        if not self._sign("["):
            entry = _entry(name, start)
            fields.append(entry)
            good = self._value(entry, depth)
            entry.whole_end = entry.end
            return good
        first = len(fields)
        good = True
        while good and not self._sign("]"):
            if self._next is None:
                return False
            entry = _entry(name, start)
            fields.append(entry)
            good = self._value(entry, depth)
            self._sign(",")
        for entry in fields[first:]:
            entry.whole_end = self._last_end
        return good

    def _value(self, entry: FieldValue, depth: int) -> bool:
        if self._next is None:
            return False
        kind, text, entry.start, entry.end = self._next
        if kind == "sign" and text in _CLOSING:
            self._take()
            entry.fields = []
            good = self.message(entry.fields, _CLOSING[text], depth + 1)
            good = good and self._sign(_CLOSING[text])
            entry.end = self._last_end
            return good
        if kind == "sign" and text != "-":
            return False
        self._take()
        while text == "-" or (kind == "string" and self._next is not None):
            if self._next is None or (kind == "string" and self._next[0] != "string"):
                break
            text = ""  # a number behind its sign; strings that follow each other are one
            self._take()
        entry.end = self._last_end
        entry.text = self._text[entry.start : entry.end]
        return True
