"""Build the docs site: python .ci/site.py [FOLDER]

Writes the site to FOLDER, by default build/site. Ends with status 1 if a link or a page of the navigation
does not exist. Needs the dependency group `docs`; opens no connection.

The pages are those of docs/, the README of each backend, plugin and client, and a few pages of the top
folder. `pages` copies them to build/pages under the addresses that they have on the site, and adapts their
links. A link to another file of this repository leads to a copy of that file.
"""

from __future__ import annotations

import os
import posixpath
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "build" / "pages"
FILES = "files"

_OTHERS = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "write/architecture.md",
    "CONTRIBUTING.md": "write/contributing.md",
    "CHANGELOG.md": "operate/changelog.md",
    "benchmarks/README.md": "operate/benchmarks.md",
    "benchmarks/NOTEBOOK.md": "operate/notebook.md",
    "examples/README.md": "start/examples.md",
    "clients/python/README.md": "serve/python-client.md",
    "backends/testing/README.md": "write/test-backends.md",
    "plugins/testing/README.md": "write/contract-tests.md",
}
_NOT_SEARCHED = ("CHANGELOG.md", "benchmarks/NOTEBOOK.md", "benchmarks/README.md")
"""Long pages that contain every word, and are seldom what a reader searches for."""
_SCRIPTS = shutil.ignore_patterns("*.py", "__pycache__")
_NAMED = re.compile(r"`(docs/[\w/-]+)\.md`")
_LINK = re.compile(r"(\]\()([^)\s]+)(\))")
_FENCE = re.compile(r"(^ *```.*?^ *```$)", re.MULTILINE | re.DOTALL)
_WAY_BACK = re.compile(r"\A\[Documentation\]\([^)]*\) / [^\n]*\n\n")


def addresses() -> dict[str, str]:
    """Return the address on the site of each page, by its path in the repository."""
    found = {}
    for path in sorted((ROOT / "docs").rglob("*.md")):
        found[_name(path)] = _name(path).removeprefix("docs/")
    for folder, part in (("backends", "serve/backends"), ("plugins", "operate/plugins")):
        for path in sorted((ROOT / folder).glob("[a-z]*/README.md")):
            found[_name(path)] = f"{part}/{path.parent.name}.md"
    return {**found, **_OTHERS}


def pages(folder: Path) -> None:
    """Write all pages, and the files that they link to, to `folder`."""
    shutil.rmtree(folder, ignore_errors=True)
    known = addresses()
    for name, address in known.items():
        if name == "README.md":
            continue
        target = folder / address
        target.parent.mkdir(parents=True, exist_ok=True)
        text = _WAY_BACK.sub("", (ROOT / name).read_text())
        if name in _NOT_SEARCHED:
            text = f"---\nsearch:\n  exclude: true\n---\n\n{text}"
        parts = _FENCE.split(text)
        parts[::2] = [_with_links(part, name, known, folder) for part in parts[::2]]
        target.write_text("".join(parts))
    shutil.copytree(ROOT / "docs" / "pictures", folder / "pictures", ignore=_SCRIPTS)
    shutil.copy(ROOT / "docs" / "site.css", folder)


def _with_links(text: str, name: str, known: dict[str, str], folder: Path) -> str:
    """Return `text` of the page `name` with the links that its page on the site needs."""

    def adapted(link: re.Match[str]) -> str:
        path, mark, anchor = link[2].partition("#")
        if not path or ":" in path:
            return link[0]
        linked = posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
        address = known.get(linked) or _copied(linked, folder)
        if address is None:
            return link[0]  # the build reports it
        start = posixpath.dirname(known[name])
        return f"{link[1]}{posixpath.relpath(address, start)}{mark}{anchor}{link[3]}"

    return _LINK.sub(adapted, _NAMED.sub(_link_to, text) if name.endswith("README.md") else text)


def _link_to(page: re.Match[str]) -> str:
    """Return a link for the name of a page in a README: an index of packages cannot follow a relative one."""
    return f"[{posixpath.basename(page[1])}](../../{page[1]}.md)"


def _copied(name: str, folder: Path) -> str | None:
    """Copy a file that is not a page; return its address, or None if there is no such file."""
    if name.startswith("docs/pictures/"):
        return name.removeprefix("docs/")
    source = ROOT / name
    if not source.is_file():
        return None
    # As text: a browser then shows it.
    address = f"{FILES}/{name}.txt"
    target = folder / address
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)
    return address


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def main(site: Path) -> int:
    pages(PAGES)
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site.resolve())]
    # Without the theme's advice to change to another program: mkdocs.yml says what to do, and when.
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(build, cwd=ROOT, env=quiet, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "site"))
