"""Parse config.pbtxt and find all of its wrong names, values and types at once.

text ─► tree ─► [parsed] ─► ModelConfig, findings.  What can be read in one way only is mended for the
reading, so that the rules of the configuration are checked as well; each such finding has its Edit.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.config import ModelConfig, parse_text
from core.config.suggestion import field_hint, value_hint
from core.config.text import BYTE_ORDER_MARK_FAULT
from core.errors import CoreError
from frontends.commands.check.finding import Edit, Finding
from frontends.commands.check.places.tree import BYTE_ORDER_MARK, FieldValue, Tree, tree_of

_MEANT = re.compile(r"did you mean '?(\w+)'?\?")
_POSITION = re.compile(r"^failed to read text proto from .*?(?::(\d+):(\d+))?: ", re.DOTALL)
_NUMBER = re.compile(r"[-+]?\d+")
_NEAR, _LEAD = 0.8, 0.08  # likeness of a name, and its distance to the next, that leave no doubt
_MOST = 50  # findings of one text
_TRUTHS = {
    "True": "true",
    "False": "false",
    "TRUE": "true",
    "FALSE": "false",
    "yes": "true",
    "no": "false",
}


@dataclass(frozen=True)
class Parsed:
    """A parsed text.

    config     None if the text cannot be read
    tree       the fields of the text as it is
    findings   what is wrong with it
    """

    config: ModelConfig | None
    tree: Tree
    findings: list[Finding]


def parsed(text: str, file: Path) -> Parsed:
    """Parse the text of a config.pbtxt. `file` is not read: findings and errors name it."""
    tree = tree_of(text)
    findings: list[Finding] = []
    cuts: list[Edit] = []  # for the reading only
    if text.startswith(BYTE_ORDER_MARK):
        cuts.append(Edit(0, len(BYTE_ORDER_MARK), ""))
        findings.append(_at(tree, BYTE_ORDER_MARK_FAULT, file, 0, 1, cuts[0]))
    for entry, message, edit in _faults(tree):
        found, span = message, (entry.name_start, entry.name_start + len(entry.name))
        if edit is not None:
            span = (edit.start, edit.end)
        findings.append(_at(tree, found, file, *span, edit))
        cuts.append(edit or Edit(entry.name_start, entry.whole_end, ""))
        if len(findings) == _MOST:
            break
    mended, offsets = _applied(text, cuts)
    try:
        return Parsed(parse_text(mended, str(file)), tree, findings)
    except CoreError as error:
        findings.append(_of_parser(error, tree, file, mended, offsets))
        return Parsed(None, tree, findings)


def _at(tree: Tree, text: str, file: Path, start: int, end: int, edit: Edit | None) -> Finding:
    line, column = tree.line_and_column(start)
    return Finding("error", "syntax", text, file, line, column, column + max(1, end - start), edit)


def _of_parser(
    error: CoreError, tree: Tree, file: Path, mended: str, offsets: Sequence[Edit]
) -> Finding:
    match = _POSITION.match(error.message)
    text = error.message[match.end() :] if match else error.message
    if match is None or match[1] is None:
        return Finding("error", "syntax", text, file)
    at = _before(Tree(mended).offset(int(match[1]), int(match[2])), offsets)
    line, column = tree.line_and_column(at)
    return Finding("error", "syntax", text, file, line, column, column + 1)


def _applied(text: str, edits: Sequence[Edit]) -> tuple[str, list[Edit]]:
    """Return the text after the edits, and those that were made: of two that overlap, the outer one."""
    parts, made, at = [], list[Edit](), 0
    for edit in sorted(edits, key=lambda each: (each.start, -each.end)):
        if edit.start >= at:
            parts += [text[at : edit.start], edit.text]
            made.append(edit)
            at = edit.end
    return "".join([*parts, text[at:]]), made


def _before(offset: int, edits: Sequence[Edit]) -> int:
    """Return where an offset of the text after the edits lies in the text before them."""
    for edit in edits:
        if edit.start >= offset:
            break
        offset += (edit.end - edit.start) - len(edit.text)
    return max(0, offset)


# Faults ------------------------------------------------------------------------------------------


def _faults(tree: Tree) -> Iterator[tuple[FieldValue, str, Edit | None]]:
    """Yield (entry, error text, edit) for each wrong name, value or type, in the order of the text."""
    waiting: list[tuple[FieldValue, Any]] = [
        (entry, ModelConfig.DESCRIPTOR) for entry in reversed(tree.fields)
    ]
    seen: set[int] = set()  # a list gives one entry for each value
    while waiting:
        entry, message = waiting.pop()
        field = message.fields_by_name.get(entry.name)
        if field is None:
            if entry.name_start not in seen and not entry.name[:1].isdigit():
                seen.add(entry.name_start)
                yield entry, *_unknown_name(entry, message, tree)
            continue
        if entry.fields is not None and field.message_type is not None:
            waiting.extend((each, field.message_type) for each in reversed(entry.fields))
        elif entry.text and field.enum_type is not None:
            if fault := _wrong_value(entry, field.enum_type):
                yield entry, *fault
        elif entry.text and field.message_type is None and (fault := _wrong_type(entry, field)):
            yield entry, *fault


def _unknown_name(entry: FieldValue, message: Any, tree: Tree) -> tuple[str, Edit | None]:
    text = field_hint(message.full_name, entry.name)
    match = _MEANT.search(text)
    if match is None:
        return text, None
    meant = match[1]
    there = [each.name for each in _siblings(tree, entry)]
    field = message.fields_by_name[meant]
    single = not _repeated(field)
    if single and meant in there:  # the text has the right one as well
        return text, None
    if (entry.fields is None) != (field.message_type is None):
        return text, None
    names = [each.name for each in message.fields]
    if certain(entry.name, names) != meant:
        return text, None
    return text, Edit(entry.name_start, entry.name_start + len(entry.name), meant)


def certain(found: str, known: Iterable[str]) -> str:
    """Return the known name that `found` certainly stands for; "" if none or several are near."""
    near = sorted(((_likeness(found, each), each) for each in set(known)), reverse=True)[:2]
    if not near or near[0][0] < _NEAR or (len(near) > 1 and near[0][0] - near[1][0] < _LEAD):
        return ""
    return near[0][1]


def _likeness(one: str, other: str) -> float:
    if len(one) > 100 or len(other) > 100:
        return 0.0
    return difflib.SequenceMatcher(None, one.lower(), other.lower()).ratio()


def _repeated(field: Any) -> bool:
    found = getattr(field, "is_repeated", None)  # protobuf 6 has it, and warns of `label`
    return bool(found) if found is not None else field.label == field.LABEL_REPEATED


def _siblings(tree: Tree, entry: FieldValue) -> list[FieldValue]:
    for each, above in tree.walk():
        if each is entry:
            return (above[-1].fields or []) if above else tree.fields
    return []


def _wrong_value(entry: FieldValue, enum: Any) -> tuple[str, Edit | None] | None:
    word = entry.text
    if word in enum.values_by_name or _NUMBER.fullmatch(word):
        return None
    text = value_hint(enum.full_name, word)
    name = entry.string.upper()
    prefix = enum.values[0].name.partition("_")[0] + "_"
    for exact in (name, prefix + name):
        if exact in enum.values_by_name:
            return text, Edit(entry.start, entry.end, exact)
    meant = certain(
        name.removeprefix(prefix), [each.removeprefix(prefix) for each in enum.values_by_name]
    )
    return text, Edit(entry.start, entry.end, prefix + meant) if meant else None


def _wrong_type(entry: FieldValue, field: Any) -> tuple[str, Edit | None] | None:
    """Return (error text, edit) for a scalar whose literal has another type than its field.

    Return None if the type is right, or if no edit is certain: then the parser reports it.
    """
    quoted = entry.text[:1] in ("'", '"')
    if field.cpp_type == field.CPPTYPE_STRING:
        if quoted or (entry.text[:1] == "-" and " " in entry.text):
            return None
        value = f'"{entry.text}"'
        return f"{entry.name} is text: write {value}", Edit(entry.start, entry.end, value)
    if field.cpp_type == field.CPPTYPE_BOOL:
        value = entry.string.lower() if quoted else entry.text
        value = _TRUTHS.get(value, value)
        if value == entry.text or value not in ("true", "false", "0", "1"):
            return None
        return f"{entry.name} is true or false: found {entry.text}", Edit(
            entry.start, entry.end, value
        )
    if quoted and _NUMBER.fullmatch(entry.string.strip()):
        value = entry.string.strip()
        return f"{entry.name} is a number: write it without quotes", Edit(
            entry.start, entry.end, value
        )
    return None
