"""Tokens of an expression, with their positions."""

from __future__ import annotations

import re
from typing import NamedTuple

from core.errors import CoreError, invalid

LONGEST = 2000
"""Characters of an expression."""

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?![\w.])
    | (?P<name>[^\W\d][\w.:]*)
    | `(?P<quoted>[^`]+)`
    | (?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    | (?P<sign><=|>=|==|!=|[<>+\-*/(),])
    )""",
    re.VERBOSE | re.DOTALL,
)
_HINTS = {
    "=": "equality is written ==",
    "&": "write and",
    "|": "write or",
    "!": "write not, or != between two values",
    "`": "a name between backticks ends with a backtick",
    "'": "a text ends with the quote that begins it",
    '"': "a text ends with the quote that begins it",
}


class Token(NamedTuple):
    """One token.

    kind   "number", "name", "quoted" (a name between backticks), "text", "sign" or "end"
    text   without backticks; a text with its quotes
    at     position of the first character, from 0
    """

    kind: str
    text: str
    at: int


def wrong(message: str, at: int, text: str) -> CoreError:
    """Return the error for a mistake at a position of an expression."""
    return invalid(f"{message}, at character {at + 1} of: {text}")


def tokens_of(text: str) -> list[Token]:
    """Return the tokens of an expression; the last one is the end. Raises CoreError(INVALID)."""
    if len(text) > LONGEST:
        raise invalid(f"an expression has at most {LONGEST} characters; this one has {len(text)}")
    found, at = [], 0
    end = len(text.rstrip())
    while at < end:
        if (match := _TOKEN.match(text, at)) is None or match.lastgroup is None:
            raise _unknown(text, at)
        kind = match.lastgroup
        start = match.start(kind) - (kind == "quoted")
        found.append(Token(kind, match[kind], start))
        at = match.end()
    return [*found, Token("end", "", end)]


def _unknown(text: str, at: int) -> CoreError:
    while text[at].isspace():
        at += 1
    if text[at].isdecimal() or text[at] == ".":
        word = re.match(r"[\w.]+", text[at:])
        shown = word[0] if word else text[at]
        return wrong(
            f"'{shown}' is no number; a tensor of this name is written `{shown}`", at, text
        )
    hint = _HINTS.get(text[at], "names with other characters stand between backticks")
    return wrong(f"unexpected {text[at]!r}: {hint}", at, text)
