"""Parses calls of tools in the forms in which families of models write them, while the text arrives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from core_generate.chat.call_readers import (
    CALL_KEYS,
    CallReader,
    JsonCall,
    NamedCall,
    Strict,
    TaggedCall,
)
from core_generate.chat.json_values import skip_space
from core_generate.chat.parser import ToolCallParser, new_call_id, overlap
from core_generate.chat.pieces import CallArguments, CallBegin, Content, Piece
from core_generate.chat.tools import Tools

MOST_HELD = 65_536  # characters that may be a call, before its name and arguments are known


@dataclass(frozen=True, slots=True)
class Family:
    """How models of one kind write calls.

    begin      marker before calls; "" if there is none
    end        marker after calls; "" if there is none
    is_bare    whether a text whose first character is { or [ may be a call without `begin`
    is_named   whether a call may also have the form name{…}
    keys       keys that a call without `begin` may have
    """

    begin: str
    end: str
    is_bare: bool = False
    is_named: bool = False
    keys: frozenset[str] = CALL_KEYS


FAMILIES = {
    "hermes": Family("<tool_call>", "</tool_call>"),
    "mistral": Family("[TOOL_CALLS]", "", is_named=True),
    "llama3": Family("<|python_tag|>", "", is_bare=True),
    "phi4": Family("<|tool_call|>", "<|/tool_call|>"),
    "nemotron": Family("<TOOLCALL>", "</TOOLCALL>"),
    "jamba": Family("<tool_calls>", "</tool_calls>"),
    "command_r": Family("<|START_ACTION|>", "<|END_ACTION|>"),
    # What a structure of core_generate.chat.tools permits.
    "json": Family("", "", is_bare=True, keys=frozenset({"name", "arguments"})),
}
_ALIASES = {"llama3_json": "llama3", "qwen": "hermes", "qwen_coder": "hermes", "smollm2": "hermes"}


def family_of(template: str) -> str:
    """Return the key of FAMILIES for a chat template, or for the name or alias of a family.

    For a template, that is the first family whose `begin` is in it; else "llama3" if it looks like Llama's;
    else "hermes".
    """
    name = _ALIASES.get(template, template)
    if name in FAMILIES:
        return name
    for name, family in FAMILIES.items():
        if family.begin and family.begin in template:
            return name
    is_llama = "<|start_header_id|>" in template and '"parameters"' in template
    return "llama3" if is_llama else "hermes"


class CallsParser(ToolCallParser):
    """Parses the text of a family: content, and calls. Text that looks like calls and has none is content.

    A call that breaks after its name is dropped from there on, also one behind a marker and another call.
    JSON without a marker may be an answer. It is a call only if it names a function, has arguments, and has
    before them no key that calls do not have. It is content from the first character that it is no call.
    tools   the functions. If the choice is "required", a call without a marker needs no arguments. Unless
            they are `parallel`, calls behind the first are dropped
    """

    plain = False

    def __init__(self, family: Family, tools: Tools, new_id: Callable[[], str] = new_call_id):
        self._family = family
        needs_arguments = tools.choice != "required"  # else all text is calls
        self._strict = Strict(tools.names, family.keys, needs_arguments)
        self._parallel = tools.parallel
        functions = [each["function"] for each in tools.functions]
        self._schemas = {each["name"]: each.get("parameters") or {} for each in functions}
        self._new_id = new_id
        self._pieces: list[Piece] = []
        self._pending = ""  # text that is not understood yet
        self._space = ""  # after content: dropped before a call
        self._count = 0
        self._read: Callable[[], bool] = self._start if family.is_bare else self._content
        self._reader: CallReader | None = None
        # Text that is content if it is no call: since the begin of calls, while there is none yet; without a
        # marker, of each further call until its name is known.
        self._raw = ""
        self._has_call = False  # since the begin
        self._is_marked = False
        self._in_list = False

    def feed(self, text: str) -> list[Piece]:
        self._pending += text
        while self._pending and self._read():
            pass
        return self._take()

    def end(self) -> list[Piece]:
        if self._read == self._calls and self._may_be_content:
            self._add_content(self._raw + self._pending)
        elif self._read in (self._content, self._start):
            self._add_content(self._pending)
        if self._space and not self._count:
            self._pieces.append(Content(self._space))
        self._pending = self._raw = self._space = ""
        return self._take()

    @property
    def _may_be_content(self) -> bool:
        """Return whether `_raw` and `_pending` become content if the text of calls ends here."""
        if reader := self._reader:
            return not (reader.begun or (self._is_marked and self._has_call))
        return not self._has_call

    # Sink of the readers.

    def begin(self, name: str) -> None:
        self._raw = self._space = ""
        self._has_call = True
        self._count += 1
        if self._is_kept:
            self._pieces.append(CallBegin(self._count - 1, self._new_id(), name))

    def arguments(self, text: str) -> None:
        if self._is_kept:
            self._pieces.append(CallArguments(self._count - 1, text))

    @property
    def _is_kept(self) -> bool:
        """Return whether the call that is read is one of the answer."""
        return self._parallel or self._count == 1

    # What `_read` may be: each takes text from the begin of `_pending` and returns whether to go on.

    def _start(self) -> bool:
        at = skip_space(self._pending, 0)
        begin = self._family.begin
        rest = self._pending[at:]
        if not rest or (begin.startswith(rest) and rest != begin):
            return False
        is_bare = rest[0] in "{["
        if is_bare:
            self._enter(at, is_marked=False)
        else:
            self._read = self._content
        return True

    def _content(self) -> bool:
        begin = self._family.begin
        at = self._pending.find(begin) if begin else -1
        if at >= 0:
            self._add_content(self._pending[:at])
            self._pending = self._pending[at:]
            self._enter(len(begin), is_marked=True)
            return True
        at = len(self._pending) - overlap(self._pending, begin)
        self._add_content(self._pending[:at])
        self._pending = self._pending[at:]
        return False

    def _enter(self, size: int, *, is_marked: bool) -> None:
        """Begin to read calls behind the first `size` characters of `_pending`, which move to `_raw`."""
        self._raw, self._pending = self._pending[:size], self._pending[size:]
        self._is_marked, self._has_call, self._in_list = is_marked, False, False
        self._read = self._calls

    def _calls(self) -> bool:
        if self._reader:
            return self._feed_reader(self._reader)
        at = skip_space(self._pending, 0)
        rest = self._pending[at:]
        end = self._family.end if self._is_marked else ""
        if not rest or (end.startswith(rest) and rest != end):
            return False
        if end and rest.startswith(end):
            return self._leave(at + len(end))
        if self._is_separator(rest[0]):
            return self._pass(at + 1)
        if self._has_call and not end and not self._in_list and rest[0] != "{":
            return self._leave(at)
        if self._is_marked and TaggedCall.BEGIN.startswith(rest):
            return False
        self._pass(at)
        if self._has_call:
            self._raw = ""
        self._reader = self._reader_of(rest)
        return True

    def _is_separator(self, each: str) -> bool:
        if each == "[" and not self._in_list and not self._has_call:
            self._in_list = True
            return True
        if each == "]" and self._in_list:
            self._in_list = False
            return True
        return each in ",;" and self._has_call

    def _pass(self, size: int) -> bool:
        """Take the first `size` characters of `_pending`, which belong to no call. Always return True."""
        self._keep(self._pending[:size])
        self._pending = self._pending[size:]
        return True

    def _keep(self, text: str) -> None:
        may_be_content = self._reader and not (self._reader.begun or self._is_marked)
        if may_be_content or not self._has_call:
            self._raw += text

    def _leave(self, size: int) -> bool:
        """End the calls behind `size` characters, and go on with content. Always return True.

        The text that was no call becomes content. If it has no marker at its begin, it is searched for one.
        """
        self._read = self._content
        raw, self._raw = self._raw, ""
        if not self._is_marked:
            self._pending = raw + self._pending[size:]
            return True
        if not self._has_call:
            self._add_content(raw + self._pending[:size])
        self._pending = self._pending[size:]
        return True

    def _reader_of(self, text: str) -> CallReader:
        if self._is_marked and text.startswith(TaggedCall.BEGIN):
            return TaggedCall(self, self._schemas)
        if self._is_marked and self._family.is_named and text[0] != "{":
            return NamedCall(self)
        return JsonCall(self, None if self._is_marked else self._strict)

    def _feed_reader(self, reader: CallReader) -> bool:
        # The bound is at the same character, however the text is cut.
        room = MOST_HELD + 1 - len(self._raw)
        end = reader.feed(self._pending[:room], 0)
        self._keep(self._pending[:end])
        self._pending = self._pending[end:]
        if len(self._raw) > MOST_HELD:
            reader.broken = True
        if reader.broken:
            self._reader = None
            is_call = self._has_call and (self._is_marked or reader.begun)
            return self._drop() if is_call else self._leave(0)
        if reader.done:
            self._reader = None
        return True

    def _drop(self) -> bool:
        """Drop the rest of a call that breaks, after its name or behind a marker. Always return True.

        Content goes on behind the end marker of the calls, or here if they have no begin or end marker.
        """
        self._read = self._until_end if self._is_marked and self._family.end else self._content
        self._raw = ""
        return True

    def _until_end(self) -> bool:
        end = self._family.end
        at = self._pending.find(end)
        if at < 0:
            self._pending = self._pending[len(self._pending) - overlap(self._pending, end) :]
            return False
        return self._leave(at + len(end))

    def _add_content(self, text: str) -> None:
        text = self._space + text
        kept = text.rstrip()
        self._space = text[len(kept) :]
        if kept:
            self._pieces.append(Content(kept))

    def _take(self) -> list[Piece]:
        pieces, self._pieces = self._pieces, []
        return pieces
