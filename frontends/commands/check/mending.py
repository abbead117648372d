"""The edits that make config.pbtxt agree with the model's file, and keep its comments and layout.

[replace_value], [replace_list] and [insert] make an Edit; [write] applies those of a report to the file and
returns the difference.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from frontends.commands.check.finding import Edit, Report
from frontends.commands.check.places.tree import FieldValue, Tree


def replace_value(entry: FieldValue, text: str) -> Edit:
    """Return the edit that replaces a scalar by `text`, a literal: a string has its quotes."""
    return Edit(entry.start, entry.end, text)


def replace_list(
    tree: Tree, parent: FieldValue | None, name: str, values: Iterable[object]
) -> Edit | None:
    """Return the edit that replaces all values of a repeated field, or adds the field to `parent`.

    parent   the message that has the field; None for the outermost one
    values   each as its `str` is written: strings with their quotes
    As many values as before take their places. Others become one list, with the comments between the old
    values on lines before it; then return None if another field stands between the old values. Also return
    None if there are none and `insert` does.
    """
    fields = (parent.fields or []) if parent is not None else tree.fields
    same = [each for each in fields if each.name == name]
    texts = list(map(str, values))
    field = f"{name}: [ {', '.join(texts)} ]"
    if not same:
        return insert(tree, parent, field)
    first, last = same[0], same[-1]
    if len(texts) == len(same):
        edits = [replace_value(*each) for each in zip(same, texts, strict=True)]
        inner, _ = mended(tree.text[: last.whole_end], edits)
        return Edit(first.name_start, last.whole_end, inner[first.name_start :])
    between = [
        e for e in fields if first.name_start < e.name_start < last.whole_end and e.name != name
    ]
    if between:
        return None
    return Edit(first.name_start, last.whole_end, _comments(tree, same) + field)


def _comments(tree: Tree, values: Sequence[FieldValue]) -> str:
    """Return the comments between the values of a field, each with the line break and indent behind it."""
    first, last = values[0], values[-1]
    ends = [first.name_start, *(each.end for each in values)]
    starts = [*(each.start for each in values), last.whole_end]
    gaps = [tree.text[end:start] for end, start in zip(ends, starts, strict=True)]
    line_start = tree.text.rfind("\n", 0, first.name_start) + 1
    before = tree.text[line_start : first.name_start]
    indent = before[: len(before) - len(before.lstrip())]
    return "".join(f"{found}\n{indent}" for gap in gaps for found in re.findall(r"#[^\n]*", gap))


def insert(tree: Tree, parent: FieldValue | None, text: str) -> Edit | None:
    """Return the edit that adds a field at the end of a message; None for a message without fields.

    parent   the message; None for the outermost one
    The field gets a line of its own if the others have one.
    """
    fields = (parent.fields or []) if parent is not None else tree.fields
    if not fields:
        return None
    last = max(fields, key=lambda each: each.whole_end)
    line_start = tree.text.rfind("\n", 0, last.name_start) + 1
    indent = tree.text[line_start : last.name_start]
    if indent.strip():
        return Edit(last.whole_end, last.whole_end, f" {text}")
    end = last.whole_end
    while tree.text[end : end + 1] in (",", ";"):
        end += 1
    rest = re.match(r"[ \t]*#[^\n]*", tree.text[end:])  # a comment stays behind its field
    end += rest.end() if rest else 0
    return Edit(end, end, f"\n{indent}{text}")


def mended(text: str, edits: Sequence[Edit]) -> tuple[str, frozenset[Edit]]:
    """Return the text after the edits, and those applied: of two that overlap, the first in the text."""
    parts: list[str] = []
    applied: set[Edit] = set()
    at = 0
    for edit in sorted(set(edits), key=lambda each: (each.start, each.end)):
        if edit.start < at:
            continue
        parts += [text[at : edit.start], edit.text]
        applied.add(edit)
        at = edit.end
    return "".join([*parts, text[at:]]), frozenset(applied)


def write(report: Report, shown: str) -> str:
    """Apply the edits of a report to its config.pbtxt, and set `report.mended` to those applied.

    shown   how the diff names the file
    Return a unified diff; "" if nothing is to be changed.
    Raises OSError if the file cannot be written. It is replaced as a whole: a reader never sees half of it.
    """
    edits = [each.edit for each in report.findings if each.edit is not None]
    if not edits or report.config_file is None:
        return ""
    text, applied = mended(report.config_text, edits)
    if text == report.config_text:
        return ""
    diff = difflib.unified_diff(
        report.config_text.splitlines(keepends=True),
        text.splitlines(keepends=True),
        shown,
        f"{shown} (mended)",
    )
    _replace(Path(os.path.realpath(report.config_file)), text.encode())
    report.mended = applied
    lines = [
        line if line.endswith("\n") else f"{line}\n\\ no newline at the end\n" for line in diff
    ]
    return "".join(lines)


def _replace(file: Path, content: bytes) -> None:
    """Replace a file by a new one with the same mode, which gets its content under a temporary name.

    Raises OSError, also if another file has that name, which stays.
    """
    mode = file.stat().st_mode & 0o7777
    new = file.with_name(f".{file.name}.{os.getpid()}")
    descriptor = os.open(new, os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_WRONLY, 0o600)
    try:
        with open(descriptor, "wb") as out:
            out.write(content)
            os.fchmod(descriptor, mode)
        new.replace(file)
    finally:
        new.unlink(missing_ok=True)
