"""Write the reference pages that come from the source: python .ci/reference.py [FOLDER]

    write/hooks.md                   from core/hookspecs.py
    write/python-api.md              from the classes that core/__init__.py names
    serve/configuration-fields.md    from core/config/*.proto

FOLDER is docs by default. Reads the source as text, so nothing has to be installed.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
CORE = ROOT / "core"
_PAGE = re.compile(r"`?docs/(\w+)/([\w-]+)\.md`?")
_FIELD = re.compile(r"((?:repeated )?\S+(?: \S+>)?) (\w+) = \d+;(?:\s*// (.*))?$")
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_ENTRY = re.compile(r"(\S(?:.*?\S)?) {2,}(\S.*)")


def hooks_page() -> str:
    """Return write/hooks.md: every hook with its arguments and its text."""
    module = ast.parse((CORE / "hookspecs.py").read_text())
    parts = [
        _head("Hooks", "core/hookspecs.py"),
        "A hook takes the arguments that it needs, by name ([plugins](plugins.md)).\n",
        "A *first-result* hook asks plugin after plugin, and stops at the first result that is not None. "
        "All other hooks call every plugin.\n",
    ]
    for each in module.body:
        if isinstance(each, ast.FunctionDef):
            first = "firstresult" in ast.unparse(each.decorator_list[0])
            note = "*First-result.*\n" if first else ""
            parts += [f"## {each.name}\n", note, _signature(each, method=False), *_doc(each)]
    return _joined(parts)


def api_page() -> str:
    """Return write/python-api.md: the public classes of core."""
    parts = [
        _head("Python API", "the classes that `core/__init__.py` names"),
        "`import core` provides these names. Each is imported when it is first used.\n",
    ]
    for module, name in _public():
        tree = ast.parse(module.read_text())
        for each in tree.body:
            if isinstance(each, ast.ClassDef) and each.name == name:
                parts += _class(each)
    return _joined(parts)


def fields_page() -> str:
    """Return serve/configuration-fields.md: every field of config.pbtxt."""
    messages: dict[str, _Message] = {}
    for path in ("model_config.proto", "model_execution.proto"):
        messages.update(_messages((CORE / "config" / path).read_text()))
    parts = [
        _head("Configuration fields", "core/config/*.proto"),
        "Every field of `config.pbtxt`. [Model configuration](model-configuration.md) has "
        "defaults, rules and examples. Fields of one *choice* exclude each other.\n",
    ]
    for name in sorted(messages, key=lambda name: name != "ModelConfig"):
        message = messages[name]
        parts.append(f"## {name}\n")
        if message.text:
            parts.append(f"{message.text}\n")
        if message.fields:
            parts.append(f"| field | type | meaning |\n|---|---|---|\n{_rows(name, messages)}\n")
        else:
            parts.append("No fields.\n")
    return _joined(parts)


PAGES = {
    "write/hooks.md": hooks_page,
    "write/python-api.md": api_page,
    "serve/configuration-fields.md": fields_page,
}


def _head(title: str, source: str) -> str:
    part = {"Hooks": "Write", "Python API": "Write"}.get(title, "Serve")
    return f"[Documentation](../index.md) / {part}\n\n# {title}\n\nMade by `make docs` from {source}.\n"


def _joined(parts: list[str]) -> str:
    return "\n".join(part for part in parts if part)


# Python


def _public() -> Iterator[tuple[Path, str]]:
    """(module, name) of each public class, in the order of importance for authors."""
    tree = ast.parse((CORE / "__init__.py").read_text())
    for each in tree.body:
        if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == "_HOMES":
            for home, names in ast.literal_eval(each.value).items():
                path = CORE / home.replace(".", "/")
                module = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
                yield from ((_definition(module, name), name) for name in names)
    yield ROOT / "frontends" / "in_process" / "server.py", "Server"


def _definition(module: Path, name: str) -> Path:
    """Return the file that defines a name which `module` may only import."""
    for each in ast.parse(module.read_text()).body:
        if isinstance(each, ast.ImportFrom) and any(part.name == name for part in each.names):
            path = ROOT / (each.module or "").replace(".", "/")
            return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return module


def _class(found: ast.ClassDef) -> list[str]:
    bases = ", ".join(ast.unparse(base) for base in found.bases)
    parts = [f"## core.{found.name}\n"]
    if bases:
        parts.append(f"Extends `{bases}`.\n")
    parts += _doc(found)
    for each in found.body:
        if not isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        starts = each.name == "__init__" and len(each.args.args) + len(each.args.kwonlyargs) > 1
        if (each.name.startswith("_") and not starts) or not (ast.get_docstring(each) or starts):
            continue
        if any("setter" in ast.unparse(mark) for mark in each.decorator_list):
            continue
        title = found.name if starts else each.name
        parts += [f"### {found.name}.{title}\n" if not starts else f"### {found.name}(…)\n"]
        parts += [_signature(each, method=True), *_doc(each)]
    return parts


def _signature(found: _Function, *, method: bool) -> str:
    marks = "".join(f"@{ast.unparse(mark)}\n" for mark in found.decorator_list if method)
    word = "async def" if isinstance(found, ast.AsyncFunctionDef) else "def"
    result = f" -> {ast.unparse(found.returns)}" if found.returns else ""
    arguments = list(_arguments(found.args))
    if method and "@staticmethod" not in marks:
        del arguments[0]
    line = f"{word} {found.name}({', '.join(arguments)}){result}"
    if len(line) > 90:
        rows = "".join(f"    {each},\n" for each in arguments)
        line = f"{word} {found.name}(\n{rows}){result}"
    return f"```py\n{marks}{line}\n```\n"


def _arguments(found: ast.arguments) -> Iterator[str]:
    """Each argument as text, with its type and default, and the marks / and *."""
    defaults = [None] * (len(found.posonlyargs) + len(found.args) - len(found.defaults))
    by_position = [*found.posonlyargs, *found.args]
    for index, (each, default) in enumerate(
        zip(by_position, [*defaults, *found.defaults], strict=True)
    ):
        yield _argument(each, default)
        if index + 1 == len(found.posonlyargs):
            yield "/"
    if found.vararg:
        yield f"*{ast.unparse(found.vararg)}"
    elif found.kwonlyargs:
        yield "*"
    for each, default in zip(found.kwonlyargs, found.kw_defaults, strict=True):
        yield _argument(each, default)
    if found.kwarg:
        yield f"**{ast.unparse(found.kwarg)}"


def _argument(found: ast.arg, default: ast.expr | None) -> str:
    if default is None:
        return ast.unparse(found)
    sign = " = " if found.annotation else "="
    return f"{ast.unparse(found)}{sign}{ast.unparse(default)}"


def _doc(found: _Function | ast.ClassDef) -> list[str]:
    """Return a docstring as Markdown: paragraphs, tables of names, and indented text as code."""
    text = ast.get_docstring(found) or ""
    return [_paragraph(part) for part in text.split("\n\n") if part.strip()]


def _paragraph(text: str) -> str:
    lines = text.splitlines()
    if all(line.startswith("    ") for line in lines):
        return "```text\n" + "\n".join(line[4:] for line in lines) + "\n```\n"
    if rows := _table(lines):
        cells = [f"| {_code(name)} | {_escaped(_linked(meaning))} |" for name, meaning in rows]
        return "| name | meaning |\n|---|---|\n" + "\n".join(cells) + "\n"
    kept = "\n".join(line.strip() for line in lines)
    return _escaped(_linked(kept), table=False) + "\n"


def _table(lines: list[str]) -> list[tuple[str, str]]:
    """Return (name, meaning) of two aligned columns; nothing for lines that are not such columns."""
    first = _ENTRY.fullmatch(lines[0])
    if first is None:
        return []
    column = first.start(2)
    rows: list[tuple[str, str]] = []
    for line in lines:
        name, meaning = line[:column], line[column:]
        if name.strip() and name.endswith(" ") and not name.startswith(" "):
            rows.append((name.strip(), meaning))
        elif rows and not name.strip():
            # Below a name: its values, each with a meaning of its own.
            more = re.sub(r'^("\w+") {2,}', r"<br>\1: ", meaning)
            rows[-1] = (rows[-1][0], f"{rows[-1][1]} {more}")
        else:
            return []
    return rows


def _code(names: str) -> str:
    return ", ".join(f"`{name.strip()}`" for name in names.split(","))


def _escaped(text: str, *, table: bool = True) -> str:
    """Keep Markdown from reading text outside of code as markup."""
    parts = text.split("`")
    for index in range(0, len(parts), 2):
        plain = parts[index].replace("*", r"\*").replace("<", "&lt;").replace("&lt;br>", "<br>")
        parts[index] = re.sub(r"(?<!\w)__(\w+)__", r"\_\_\1\_\_", plain)
    joined = "`".join(parts)
    return joined.replace("|", r"\|") if table else joined


def _linked(text: str) -> str:
    return _PAGE.sub(r"[\2](../\1/\2.md)", text)


# protobuf


@dataclass
class _Message:
    """A message: its comment, (name, type, meaning) of its fields, and the values of its enums."""

    text: str = ""
    fields: list[tuple[str, str, str]] = field(default_factory=list)
    values: dict[str, list[str]] = field(default_factory=dict)


def _messages(proto: str) -> dict[str, _Message]:
    """Return the messages of a .proto file by their names, with a row for each field."""
    found: dict[str, _Message] = {}
    values: dict[str, list[str]] = {}
    stack: list[tuple[str, str]] = []
    comment: list[str] = []
    for line in map(str.strip, proto.splitlines()):
        scope = ".".join(word for kind, word in stack if kind != "oneof")
        if line.startswith("//"):
            comment.append(line.removeprefix("//").strip())
            continue
        if opened := re.match(r"(message|enum|oneof) (\w+) \{", line):
            kind, word = opened.groups()
            if kind == "message":
                found[f"{scope}.{word}".lstrip(".")] = _Message(" ".join(comment))
            if not line.endswith("}"):
                stack.append((kind, word))
        elif line == "}":
            stack.pop()
        elif stack and stack[-1][0] == "enum":
            values.setdefault(scope, []).append(line.partition(" ")[0])
        elif entry := _FIELD.match(line):
            choice = f"; *choice {stack[-1][1]}*" if stack[-1][0] == "oneof" else ""
            found[scope].fields.append((entry[2], entry[1], _escaped(entry[3] or "") + choice))
        comment = []
    for name, message in found.items():
        for word in values:
            if word.startswith(f"{name}.") or "." not in word:
                message.values[word.rpartition(".")[2]] = values[word]
    return found


def _rows(name: str, messages: dict[str, _Message]) -> str:
    message = messages[name]
    lines = [
        f"| `{word}` | {_kind(kind, name, message, messages)} | {text} |"
        for word, kind, text in message.fields
    ]
    return "\n".join(lines)


def _kind(kind: str, scope: str, message: _Message, messages: dict[str, _Message]) -> str:
    """Return a type in words: its values if it is an enum, a link if it is a message."""
    if kind.startswith("map<"):
        key, _, value = kind[4:-1].partition(", ")
        return f"{_kind(value, scope, message, messages)} by `{key}`"
    if kind.startswith("repeated "):
        return f"list of {_kind(kind[9:], scope, message, messages)}"
    if kind in message.values and kind != "DataType":
        return ", ".join(f"`{value}`" for value in message.values[kind])
    for outer in _scopes(scope):
        if (full := f"{outer}.{kind}".lstrip(".")) in messages:
            return f"[{full}](#{full.lower().replace('.', '')})"
    return f"`{kind}`"


def _scopes(name: str) -> Iterator[str]:
    """A name, the name around it, and so on; last the empty one."""
    while name:
        yield name
        name = name.rpartition(".")[0]
    yield ""


def main(folder: Path) -> None:
    for name, page in PAGES.items():
        (folder / name).write_text(page())


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs")
