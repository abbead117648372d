"""Every block of every page is run or says why not. Commands, flags and files that pages name exist."""

import argparse
import importlib.util
import re
import shlex

import pytest
from pages.blocks import ROOT, RUN, SHELL, blocks, commands, pages, readmes, without_blocks
from pages.test_tutorials import PAGES as TUTORIALS

from core import plugins
from core.options.command_line import parse
from core.options.deprecated import ALIASES, DEPRECATED

LANGUAGES = {
    *RUN, "text", "py", "protobuf", "json", "toml", "yaml", "cpp", "cython", "cmake", "dockerfile",
    "js",
}  # fmt: skip
FLAGS = {*(flag.name for flag in plugins.flags().rows), *ALIASES, *DEPRECATED}
"""Of core, of the frontends and of the installed plugins."""
SERVERS = (["core-serve"], ["core", "serve"], ["python", "-m", "core.serve"])
OWN = ("--dev", "--trust")
ALL = [block for page in pages() for block in blocks(page)]
OTHERS_FLAGS = {
    *(
        "audit",
        "flag",
        "burst",
        "concurrent",
        "dev",
        "find-links",
        "help",
        "help-all",
        "json",
        "name",
        "rate",
    ),
    *("shm-size", "version", "volumes"),
    *("environment", "force", "input", "link", "output", "trust", "with"),
    *("least", "most-ms", "route"),  # of benchmarks
    *("format", "load", "strict", "tokens", "triton-launch-mode", "write"),
}
"""Flags of other programs, and of the commands of `python -m core`, that pages name."""
if importlib.util.find_spec("core_bench"):
    from core_bench.flags.refused import FLAGS as REFUSED
    from core_bench.flags.table import parser

    taken = {name for action in parser()._actions for name in action.option_strings}
    OTHERS_FLAGS |= {name.lstrip("-") for name in taken | set(REFUSED)}
if importlib.util.find_spec("core_router"):
    from core_router.options import declare

    declare(router := argparse.ArgumentParser())
    taken = {name for action in router._actions for name in action.option_strings}
    OTHERS_FLAGS |= {name.lstrip("-") for name in taken}
if importlib.util.find_spec("core_capture"):
    from core_capture.commands import drift, export, replay, show, warmup

    for command in (drift, export, replay, show, warmup):
        command.arguments(captured := argparse.ArgumentParser())
        taken = {name for action in captured._actions for name in action.option_strings}
        OTHERS_FLAGS |= {name.lstrip("-") for name in taken}
if importlib.util.find_spec("core_jobs"):
    from core_jobs.offline import command as offline

    offline.arguments(offline_run := argparse.ArgumentParser())
    taken = {name for action in offline_run._actions for name in action.option_strings}
    OTHERS_FLAGS |= {name.lstrip("-") for name in taken}
if importlib.util.find_spec("core_tune"):
    from core_tune.flags.table import parser as tune_parser

    taken = {name for action in tune_parser()._actions for name in action.option_strings}
    OTHERS_FLAGS |= {name.lstrip("-") for name in taken}


def served(command):
    """Return the arguments of a command that starts a server, or None."""
    words = shlex.split(re.sub(r"\$\([^)]*\)", "text", command))
    for start in SERVERS:
        if words[: len(start)] == start:
            given = words[len(start) :]
            # `core serve` takes paths, and flags of its own.
            ours = start == ["core", "serve"]
            return [each for each in given if not (ours and (each[0] != "-" or each in OWN))]
    return None


@pytest.mark.parametrize("page", pages())
def test_every_block_names_its_language(page):
    assert [str(each) for each in blocks(page) if each.language not in LANGUAGES] == []
    text = without_blocks(page)
    indented = re.findall(r"(?<=\n\n)    +(?![-*\d ]).*", text)
    assert indented == [] or page == "README.md", "write ```sh or ```text around them"


@pytest.mark.parametrize("block", [each for each in ALL if each.language in RUN], ids=str)
def test_a_block_is_run_or_says_why_not(block):
    if block.mark == "not run":
        assert len(block.said.split()) >= 2
    elif block.mark == "tested by":
        test = ROOT / block.said
        assert test.is_file() and block.page.rpartition("/")[2] in test.read_text()
    elif block.page in TUTORIALS or block.page == "README.md":  # test_docs.py asks the README
        pass
    elif block.file:
        assert (ROOT / block.file).is_file()  # tests of the page compare the text
    else:
        assert block.language in SHELL, (
            "run it, or say why not: tests/pages/blocks.py has the marks"
        )
        other = [each for each in commands(block) if served(each) is None]
        assert other == [], "run them, or say why not: tests/pages/blocks.py has the marks"


def starts(page):
    """Return the commands of a page that start a server."""
    if page.endswith("README.md"):  # its blocks may be indented, and need not name a language
        lines = re.sub(r"\\\n\s*", "", (ROOT / page).read_text()).splitlines()
        found = [line.split(" #")[0].strip() for line in lines if line.strip().startswith("core")]
    else:
        shell = [block for block in blocks(page) if block.language in SHELL]
        found = [command for block in shell for command in commands(block)]
    return [pytest.param(each, id=f"{page}-{each[:40]}") for each in found if is_start(each)]


def is_start(command):
    try:
        return served(command) is not None
    except ValueError:  # prose with an apostrophe
        return False


@pytest.mark.parametrize(
    "command", [each for page in [*pages(), *readmes()] for each in starts(page)]
)
def test_a_server_takes_the_flags_that_a_page_gives_it(command):
    known = plugins.flags()
    if "--tally=requests" in command:  # the plugin of a tutorial
        known.add("tally", "", "Word.")

    parse(served(command), known)


@pytest.mark.parametrize("page", [*pages(), *readmes()])
def test_every_flag_that_a_page_names_exists(page):
    named = set(re.findall(r"`--([a-z][a-z0-9-]+)", without_blocks(page)))

    unknown = {name for name in named - FLAGS - OTHERS_FLAGS if not is_part(name)}
    assert unknown == set()


def is_part(name):
    """Whether it is the beginning of flags, as in `--http-restricted-…`."""
    return name.endswith("-") and any(flag.startswith(name) for flag in FLAGS)


@pytest.mark.parametrize("page", [page for page in pages() if page.count("/") == 2])
def test_every_page_has_a_way_back(page):
    part = page.split("/")[1].capitalize()

    assert (ROOT / page).read_text().startswith(f"[Documentation](../index.md) / {part}\n\n# ")
