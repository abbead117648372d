"""Settings in the text of config.pbtxt: only the fields that differ change; comments and layout stay."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from core_tune.configuration.threads import ThreadParameters
from core_tune.settings import Settings
from frontends.commands.check.finding import Edit
from frontends.commands.check.mending import insert, mended, replace_list, replace_value
from frontends.commands.check.places.tree import FieldValue, Tree, tree_of


def with_settings(
    text: str, now: Settings, wanted: Settings, threads: ThreadParameters | None = None
) -> str:
    """Return the text with settings that replace those of `now`, which the text has or its defaults are.

    threads   of the backend; None if it declares none
    """
    if (wanted.instances, wanted.kind) != (now.instances, now.kind):
        for edits in _instances(wanted, now):
            text = _edited(text, edits(tree_of(text)))
    if (wanted.batch, wanted.delay_us, wanted.least) != (now.batch, now.delay_us, now.least):
        for edits in _batching(text, wanted):
            text = _edited(text, edits(tree_of(text)))
    if threads is not None:
        before = threads.values(now)
        for name, value in threads.values(wanted).items():
            if before.get(name) != value:
                text = _edited(text, _parameter(tree_of(text), name, value))
    return text


def difference(path: str, before: str, after: str) -> str:
    """Return the unified difference; "" for equal texts."""
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), path, f"{path} (tuned)"
    )
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ no newline at the end\n" for line in lines
    )


def read(path: Path) -> str:
    """Return the text of a config.pbtxt; "" if there is none. Raises OSError and UnicodeDecodeError."""
    return path.read_text(encoding="utf-8") if path.exists() else ""


Edits = list[Edit]
_Change = Callable[[Tree], Edits]


def _edited(text: str, edits: Edits) -> str:
    return mended(text, edits)[0]


def _field(entries: list[FieldValue], name: str) -> FieldValue | None:
    return next((each for each in entries if each.name == name), None)


def _added(tree: Tree, parent: FieldValue | None, line: str) -> Edits:
    """Return the edit that adds a field; into a message or text without fields, too."""
    if (edit := insert(tree, parent, line)) is not None:
        return [edit]
    if parent is None:
        gap = "" if not tree.text or tree.text.endswith("\n") else "\n"
        return [Edit(len(tree.text), len(tree.text), f"{gap}{line}\n")]
    return [Edit(parent.start, parent.end, f"{{ {line} }}")]


def _instances(wanted: Settings, now: Settings) -> Iterator[_Change]:
    """Yield the changes of instance_group, each of the text after those before it."""
    if wanted.instances != now.instances:
        yield lambda tree: _of_group(tree, "count", str(wanted.instances))
    if wanted.kind != now.kind:
        yield lambda tree: _of_group(tree, "kind", wanted.kind)
        yield _without_gpus


def _of_group(tree: Tree, name: str, value: str) -> Edits:
    group = _serving_group(tree)
    if group is None:
        return _added(tree, None, f"instance_group [ {{ {name}: {value} }} ]")
    known = _field(group.fields or [], name)
    return [replace_value(known, value)] if known else _added(tree, group, f"{name}: {value}")


def _without_gpus(tree: Tree) -> Edits:
    """Return the edits that remove the numbers of GPUs, which another kind does not have."""
    group = _serving_group(tree)
    found = [each for each in (group.fields or []) if each.name == "gpus"] if group else []
    spans = dict.fromkeys((each.name_start, each.whole_end) for each in found)
    return [Edit(start, end, "") for start, end in spans]


def _serving_group(tree: Tree) -> FieldValue | None:
    groups = [each for each in tree.fields if each.name == "instance_group"]
    return next((each for each in groups if not _is_passive(each)), None)


def _parameter(tree: Tree, name: str, value: str) -> Edits:
    for entry in tree.fields:
        key = _field(entry.fields or [], "key") if entry.name == "parameters" else None
        if key is None or key.string != name:
            continue
        holder = _field(entry.fields or [], "value")
        if holder is None:
            return _added(tree, entry, f'value {{ string_value: "{value}" }}')
        known = _field(holder.fields or [], "string_value")
        if known is not None:
            return [replace_value(known, f'"{value}"')]
        return _added(tree, holder, f'string_value: "{value}"')
    line = f'parameters {{ key: "{name}" value {{ string_value: "{value}" }} }}'
    return _added(tree, None, line)


def _is_passive(group: FieldValue) -> bool:
    found = _field(group.fields or [], "passive")
    return found is not None and found.text in ("true", "True", "t", "1")


def _batching(text: str, wanted: Settings) -> Iterator[_Change]:
    """Yield the changes of dynamic_batching, each of the text after those before it."""
    block = _field(tree_of(text).fields, "dynamic_batching")
    if block is None:
        delay = f" max_queue_delay_microseconds: {wanted.delay_us}" if wanted.delay_us else ""
        sizes = ", ".join(map(str, wanted.sizes))
        line = f"dynamic_batching {{ preferred_batch_size: [ {sizes} ]{delay} }}"
        yield lambda tree: _added(tree, None, line)
        return
    yield lambda tree: _preferred(tree, wanted.sizes)
    yield lambda tree: _delay(tree, wanted.delay_us)


def _preferred(tree: Tree, sizes: Sequence[int]) -> Edits:
    block = _field(tree.fields, "dynamic_batching")
    assert block is not None
    text = ", ".join(map(str, sizes))
    if not block.fields:
        return _added(tree, block, f"preferred_batch_size: [ {text} ]")
    edit = replace_list(tree, block, "preferred_batch_size", sizes)
    if edit is not None:
        return [edit]
    # Its values stand apart from each other: the first becomes the only one.
    values = [each for each in block.fields if each.name == "preferred_batch_size"]
    gone = [Edit(each.name_start, each.whole_end, "") for each in values[1:]]
    return [Edit(values[0].start, values[0].end, f"[ {text} ]"), *gone]


def _delay(tree: Tree, delay_us: int) -> Edits:
    block = _field(tree.fields, "dynamic_batching")
    assert block is not None
    known = _field(block.fields or [], "max_queue_delay_microseconds")
    if known is not None:
        return [replace_value(known, str(delay_us))]
    return _added(tree, block, f"max_queue_delay_microseconds: {delay_us}") if delay_us else []
