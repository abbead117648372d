"""The code blocks of the pages for authors are parts of packages in examples, whose tests run with these.

A block shows the imports that it needs. Each import, and each definition in one piece, is in the file.
"""

import ast
import builtins
import json
import re
import subprocess
import sys
import textwrap
from collections import defaultdict
from pathlib import Path

import pytest
from core_testing.kit import CAPABILITIES

from core import hookspecs

ROOT = Path(__file__).parents[1]
PAGES = ("write/write-a-backend.md", "write/plugins.md", "serve/model-repository.md")


def blocks():
    """(page, file, text) of each block below a line that names a file."""
    for page in PAGES:
        text = (ROOT / "docs" / page).read_text()
        for file, block in re.findall(r"^`([\w./-]+)`:\n\n```\w+\n(.*?)```", text, re.M | re.S):
            yield pytest.param(file, block, id=f"{page}-{block.split(chr(10))[0][:40]}")


def cut(block):
    """Return the parts of a block that are in its file in one piece: each import, and each definition."""
    parts = []
    for part in filter(None, block.split("\n\n\n")):
        lines = part.splitlines(keepends=True)
        while lines and (lines[0].startswith(("import ", "from ")) or not lines[0].strip()):
            parts.append(lines.pop(0))
        parts.append("".join(lines))
    return [part for part in parts if part.strip()]


@pytest.mark.parametrize(("file", "block"), list(blocks()))
def test_a_block_is_in_the_file_that_it_is_cut_from(file, block):
    text = (ROOT / file).read_text()

    assert [part for part in cut(block) if part not in text] == []


@pytest.mark.parametrize("page", PAGES)
def test_blocks_show_what_they_import(page):
    shown = defaultdict(str)
    for each in blocks():
        file, block = each.values
        if each.id.startswith(page) and file.endswith(".py"):
            shown[file] += textwrap.dedent(block) + "\n"

    assert {file: names for file, text in shown.items() if (names := unknown_names(text))} == {}


def unknown_names(text):
    """Return the names that a module uses and does not define."""
    nodes = list(ast.walk(ast.parse(text)))
    known = set(vars(builtins))
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            known |= {(each.asname or each.name).partition(".")[0] for each in node.names}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            known.add(node.name)
        elif isinstance(node, ast.arg):
            known.add(node.arg)
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            known.add(node.id)
    return sorted({node.id for node in nodes if isinstance(node, ast.Name)} - known)


@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_python_is_cut_from_a_file(page):
    text = (ROOT / "docs" / page).read_text()

    all_of_them = re.findall(r"^```python\n(.*?)```", text, re.M | re.S)
    cut = re.findall(r"^`[\w./-]+`:\n\n```python\n(.*?)```", text, re.M | re.S)

    assert [block for block in all_of_them if block not in cut] == []
    assert len(cut) > 1


def test_the_page_has_every_hook():
    text = (ROOT / "docs" / "write" / "plugins.md").read_text()
    hooks = {name for name in vars(hookspecs) if name.startswith("core_")}

    assert set(re.findall(r"^\| `(core_\w+)\(", text, re.M)) == hooks


def test_the_page_has_every_capability():
    text = (ROOT / "docs" / "write" / "write-a-backend.md").read_text()

    assert set(re.findall(r"^\| `(\w+)` \|", text, re.M)) == set(CAPABILITIES)


def known_by(backend):
    """Return a backend's completion, from a separate process, since frameworks can be imported only once."""
    code = """
import json, sys
from core import plugins
backend = plugins.backend(sys.argv[1])
print(json.dumps([*backend.known_parameters, *backend.known_settings]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code, backend], check=True, capture_output=True, text=True
    )
    return set(json.loads(done.stdout.splitlines()[-1])) - {"*", "*.*"}


@pytest.mark.parametrize("name", ["fil", "onnx", "openvino", "python", "pytorch", "tensorrt"])
def test_the_page_of_a_backend_has_every_parameter_and_setting_that_it_knows(name):
    known = known_by(name)
    pages = [ROOT / "backends" / name / "README.md", ROOT / "docs" / "serve" / "environments.md"]
    text = "".join(page.read_text() for page in pages)
    assert known
    assert {each for each in known if each not in text} == set()
