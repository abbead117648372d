"""The code blocks of a page, and the marks that say how each is tested.

test_tutorials.py runs some pages from top to bottom. On any other page, a block of commands or Python is text
of a file, or only starts servers (their flags are checked), or has a mark in the line above it:

    `path`:                           (and an empty line) text of that file: a page that is run writes it, the
                                      block of another page is cut from that file (test_pages.py)
    <!-- not run: REASON -->          cannot run here
    <!-- tested by: FILE -->          this test runs it
    <!-- the test runs: COMMAND -->   instead of the block, which would change the checkout or take minutes
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SHELL = ("sh", "bash", "console")
RUN = (*SHELL, "python")
GROUPS = ("backends", "plugins", "clients")

_FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_MARK = re.compile(r"<!-- (not run|tested by|the test runs): (.+) -->\n\Z")
_FILE = re.compile(r"^ *`([\w./-]+)`:\n\n\Z", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """One code block.

    mark    "not run", "tested by", "the test runs", or "" without a mark
    said    text of the mark
    file    path of the file whose text it is, or ""
    """

    page: str
    line: int
    language: str
    text: str
    mark: str = ""
    said: str = ""
    file: str = ""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[str]:
    """Return the paths of all pages of the documentation."""
    found = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    return sorted(path.relative_to(ROOT).as_posix() for path in found)


def readmes() -> list[str]:
    """Return the paths of the READMEs of backends, plugins and clients."""
    found = (path for group in GROUPS for path in (ROOT / group).rglob("README.md"))
    named = (path.relative_to(ROOT).as_posix() for path in found)
    return sorted(name for name in named if not re.search(r"(^|/)[_.]|/build/", name))


def blocks(page: str) -> list[Block]:
    """Return the fenced blocks of a page in their order."""
    text = (ROOT / page).read_text()
    found = []
    for fence in _FENCE.finditer(text):
        indent, language, body = fence.groups()
        before = text[: fence.start()]
        mark = _MARK.search(before)
        file = _FILE.search(before)
        found.append(
            Block(
                page,
                before.count("\n") + 1,
                language,
                re.sub(rf"^{indent}", "", body, flags=re.MULTILINE),
                *(mark.groups() if mark else ("", "")),
                file[1] if file else "",
            )
        )
    return found


def commands(block: Block) -> list[str]:
    """Return the commands of a block of shell text, without comments and answers."""
    text = re.sub(r"\\\n\s*", "", block.text)
    if block.language == "console":
        return re.findall(r"^\$ (.*)", text, re.MULTILINE)
    lines = (re.sub(r"(^|\s)#.*", "", line).strip() for line in text.splitlines())
    return [line for line in lines if line]


def without_blocks(page: str) -> str:
    """Return the text of a page between its blocks."""
    return _FENCE.sub("", (ROOT / page).read_text())
