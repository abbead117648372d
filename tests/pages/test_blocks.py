"""Every block of every page is run, or says why not; flags are spelt right."""

import re
import shlex

import pytest
from pages import test_tutorials
from pages.blocks import ROOT, RUN, blocks, pages, without_blocks

from core import plugins

LANGUAGES = {
    *RUN, "text", "protobuf", "json", "toml", "yaml", "cpp", "cython", "cmake", "dockerfile", "js",
}  # fmt: skip
FLAGS = {flag.name for flag in plugins.flags().rows}
"""Of core, of the frontends and of the installed plugins."""
RUN_ELSEWHERE = {"README.md"}  # test_docs.py, by .ci/smoke.py
ALL = [block for page in pages() for block in blocks(page)]


@pytest.mark.parametrize("page", pages())
def test_every_block_names_its_language(page):
    assert [str(each) for each in blocks(page) if each.language not in LANGUAGES] == []
    indented = re.findall(r"(?:\A|\n)\n(?:    .*\n)+", without_blocks(page))
    assert [text for text in indented if page != "README.md" and not re.match(r"\n+ +(-|\d)", text)] == []
