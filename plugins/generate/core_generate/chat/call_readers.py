"""Reads one call of a tool in each of the forms in which models write it, from text in pieces.

A reader gives its sink the function's name once, then the text of the arguments as it arrives. It sets
`broken` at the first character that the form does not allow; what it has given the sink by then stays.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import orjson

from core_generate.chat.json_values import SPACE, ValueScanner

_NAME_KEYS = {"name", "tool_name"}
_ARGUMENTS_KEYS = {"arguments", "parameters"}
# All keys that models write into a call.
CALL_KEYS = frozenset({*_NAME_KEYS, *_ARGUMENTS_KEYS, "function", "type", "id"})
_TYPES = frozenset({"function"})
_MOST_WORD = 1024  # characters of a compared key or name, with escapes
_SKIPPED = "skipped"  # the value of any other key


class Sink(Protocol):
    """Takes what a reader finds: the name of the function once, then its arguments as JSON text in pieces."""

    def begin(self, name: str) -> None: ...

    def arguments(self, text: str) -> None: ...


class CallReader:
    """Base class of the readers. One reader reads one call.

    begun    whether the sink has been given the name
    done     whether the call is complete
    broken   whether the text is no call in this form
    """

    def __init__(self, sink: Sink):
        self._sink = sink
        self.begun = False
        self.done = False
        self.broken = False

    def feed(self, text: str, at: int) -> int:
        """Read the next piece of text from the place `at` on, unless `done` or `broken`.

        Return the place where the call ends, or the length of the piece if it goes on; if it breaks, either.
        """
        raise NotImplementedError

    def _begin(self, name: str) -> None:
        self.begun = True
        self._sink.begin(name)


@dataclass(frozen=True, slots=True)
class Strict:
    """What makes a JSON object without a marker a call, and no answer.

    names             names of the functions
    keys              keys that a call may have
    needs_arguments   whether an object without arguments is an answer
    """

    names: frozenset[str]
    keys: frozenset[str] = CALL_KEYS
    needs_arguments: bool = True


class JsonCall(CallReader):
    """Reads {"name": "f", "arguments": {…}}, the keys in any order, also within {"function": {…}}.

    The arguments may also be a string with JSON. Without arguments, the sink gets {}.
    strict   what a text without a marker must have to be a call; None behind a marker. Such a call breaks at
             the first character that makes it something else: until the sink has the name, each key, the
             name and a `type` are compared while they arrive
    """

    def __init__(self, sink: Sink, strict: Strict | None = None):
        super().__init__(sink)
        self._strict = strict
        self._depth = 0
        self._expects = "open"
        self._value: ValueScanner | None = None
        # Of the value: key, name, type, arguments (whole), streamed (arguments), skipped.
        self._role = ""
        self._parts: list[str] = []
        self._words: frozenset[str] | None = None  # what the value may be; None for anything
        self._key = ""
        self._name = ""
        self._held: list[str] = []  # arguments that came before the name
        self._has_arguments = False

    def feed(self, text: str, at: int) -> int:
        end = len(text)
        while at < end and not (self.done or self.broken):
            if self._value is not None:
                at = self._read_value(self._value, text, at)
            elif text[at] in SPACE:
                at += 1
            else:
                at = self._read(text, at)
        return at

    def _read(self, text: str, at: int) -> int:
        each, expects, strict = text[at], self._expects, self._compared
        if expects == "open" and each == "{":
            self._depth, self._expects = 1, "key"
        elif expects == "key" and each == '"':
            return self._begin_value("key", at, strict.keys if strict else None)
        elif expects == "key" and each == "}":
            self._close()
        elif expects == "key" and each == ",":
            pass
        elif expects == "colon" and each == ":":
            self._expects = "value"
        elif expects == "value":
            return self._begin_named_value(each, at)
        else:
            self.broken = True
            return at
        return at + 1

    @property
    def _compared(self) -> Strict | None:
        """Return what the text must have, until the sink has the name; then the text is a call."""
        return None if self.begun else self._strict

    def _begin_value(self, role: str, at: int, words: frozenset[str] | None = None) -> int:
        self._role, self._value, self._parts, self._words = role, ValueScanner(), [], words
        return at

    def _begin_named_value(self, first: str, at: int) -> int:
        self._expects = "key"
        key, strict = self._key, self._compared
        if key == "function" and first == "{":
            self._depth += 1
            return at + 1
        if not self._name and (key in _NAME_KEYS or (key == "function" and first == '"')):
            return self._begin_value("name", at, strict.names if strict else None)
        if key in _ARGUMENTS_KEYS and not self._has_arguments:
            self._has_arguments = True
            self.broken = strict is not None and first not in '{"n'  # n: null
            return self._begin_value("streamed" if first == "{" else "arguments", at)
        if strict and key == "type":
            return self._begin_value("type", at, _TYPES)
        self.broken = strict is not None and key != "id"  # the same key again
        return self._begin_value(_SKIPPED, at)

    def _read_value(self, scanner: ValueScanner, text: str, at: int) -> int:
        end = scanner.scan(text, at)
        if self._role == "streamed":
            self._add_arguments(text[at:end])
        elif self._role != _SKIPPED:
            self._parts.append(text[at:end])
        if scanner.done:
            self._value = None
            if self._role in ("key", "name", "type", "arguments"):
                self._end_value("".join(self._parts))
        elif self._words is not None:
            self.broken = not _may_become("".join(self._parts), self._words)
        return end

    def _end_value(self, text: str) -> None:
        try:
            value = orjson.loads(text)
        except ValueError:
            self.broken = True
            return
        if self._role == "arguments":
            self._end_arguments(value, text)
        elif not isinstance(value, str) or value not in (self._words or {value}) or not value:
            self.broken = True
        elif self._role == "key":
            self._key, self._expects = value, "colon"
        elif self._role == "name":
            self._name = value
            if self._held:
                self._add_arguments("")

    def _end_arguments(self, value: Any, text: str) -> None:
        whole = "{}" if value is None or value == "" else value
        if self._compared and isinstance(whole, str) and not _is_object(whole):
            self.broken = True
            return
        self._add_arguments(whole if isinstance(whole, str) else text)

    def _add_arguments(self, text: str) -> None:
        if not self.begun:
            self._held.append(text)
            if not self._name:
                return
            self._begin(self._name)
            text = "".join(self._held)
        if text:
            self._sink.arguments(text)

    def _close(self) -> None:
        self._depth -= 1
        if self._depth:
            return
        if not self.begun and not (self._strict and self._strict.needs_arguments):
            self._add_arguments("{}")  # a call without arguments
        self.done = self.begun
        self.broken = not self.begun


def _is_object(text: str) -> bool:
    try:
        return isinstance(orjson.loads(text), dict)
    except ValueError:
        return False


def _may_become(text: str, words: frozenset[str]) -> bool:
    """Return whether the begin of a JSON string may go on to one of the words."""
    if len(text) > _MOST_WORD or text[0] != '"':
        return False
    return "\\" in text or any(each.startswith(text[1:]) for each in words)


class NamedCall(CallReader):
    """Reads name[ARGS]{…} or name{…}, as newer models of Mistral write it. [CALL_ID]… is skipped."""

    _HEAD = re.compile(r"\s*([A-Za-z0-9_.:/-]{1,128})(?:\[CALL_ID\][^\[{]*)?(?:\[ARGS\])?\s*")
    _MOST_HEAD = 512  # characters

    def __init__(self, sink: Sink):
        super().__init__(sink)
        self._head = ""
        self._value = ValueScanner()

    def feed(self, text: str, at: int) -> int:
        if not self.begun:
            brace = text.find("{", at)
            stop = len(text) if brace < 0 else brace
            stop = min(stop, at + self._MOST_HEAD - len(self._head))
            self._head += text[at:stop]
            if len(self._head) == self._MOST_HEAD:
                self.broken = True
                return stop
            if brace < 0:
                return stop
            match = self._HEAD.fullmatch(self._head)
            if not match:
                self.broken = True
                return stop
            self._begin(match[1])
            at = stop
        end = self._value.scan(text, at)
        if end > at:
            self._sink.arguments(text[at:end])
        self.done = self._value.done
        return end


class TaggedCall(CallReader):
    """Reads <function=name><parameter=key>value</parameter>…</function>, as Qwen's coders write it.

    The sink gets the arguments as a JSON object.
    schemas   name of a function → JSON schema of its arguments, which says which values are strings
    """

    BEGIN = "<function="
    _OPEN = re.compile(r"\s*<function=([^>\s]{1,128})>")
    _PARAMETER = re.compile(r"\s*<parameter=([^>\s]{1,128})>\n?(.*?)\n?</parameter>", re.DOTALL)
    _CLOSE = re.compile(r"\s*</function>")
    _MOST_HEAD = 512  # characters

    def __init__(self, sink: Sink, schemas: Mapping[str, Mapping[str, Any]]):
        super().__init__(sink)
        self._schemas = schemas
        self._properties: Mapping[str, Any] = {}
        self._text = ""
        self._separator = "{"

    def feed(self, text: str, at: int) -> int:
        self._text += text[at:]
        if ">" not in text:  # nothing can end: a long value is not searched again for each token
            return len(text)
        place = 0
        while not (self.done or self.broken):
            found = self._next(place)
            if found is None:
                break
            place = found
        rest = len(self._text) - place
        self._text = self._text[place:]
        return len(text) - rest if self.done else len(text)

    def _next(self, at: int) -> int | None:
        if not self.begun:
            match = self._OPEN.match(self._text, at)
            if match:
                properties = self._schemas.get(match[1], {}).get("properties")
                self._properties = properties if isinstance(properties, dict) else {}
                self._begin(match[1])
                return match.end()
            self.broken = len(self._text) - at > self._MOST_HEAD
            return None
        if match := self._CLOSE.match(self._text, at):
            self._sink.arguments("{}" if self._separator == "{" else "}")
            self.done = True
            return match.end()
        if match := self._PARAMETER.match(self._text, at):
            key = orjson.dumps(match[1]).decode()
            self._sink.arguments(f"{self._separator}{key}: {self._value(match[1], match[2])}")
            self._separator = ", "
            return match.end()
        return None

    def _value(self, name: str, text: str) -> str:
        """Return the JSON of a parameter's value.

        That is `text` if it is valid JSON and the schema does not make the parameter a string; else `text` as
        a JSON string.
        """
        schema = self._properties.get(name)
        kind = schema.get("type") if isinstance(schema, dict) else None
        if kind != "string":
            try:
                orjson.loads(text)
                return text.strip()
            except ValueError:  # a string without quotes
                pass
        return orjson.dumps(text).decode()
