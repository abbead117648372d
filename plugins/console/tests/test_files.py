"""The files of the page: their size, their texts, and that they name no other server."""

import gzip
import re
from importlib import resources

import pytest
from core_console.options import ConsoleOptions, is_on

from core.options import Options, UsageError
from frontends.http.options import HttpOptions

WEB = resources.files("core_console").joinpath("web")
FILES = {each.name: each.read_text() for each in WEB.iterdir()}
SCRIPTS = {name: text for name, text in FILES.items() if name.endswith(".js")}


def test_all_files_together_are_smaller_than_150_kb():
    size = sum(len(gzip.compress(text.encode())) for text in FILES.values())

    assert size < 150_000


def test_no_file_names_another_server():
    addresses = {
        found
        for text in FILES.values()
        for found in re.findall(r"https?://[^\s\"'`)]+", text)
        if not found.startswith("http://www.w3.org/")
    }

    assert addresses == set()


def test_every_text_of_the_page_has_a_chinese_one():
    literal = re.compile(r"\bt\(\s*\"((?:[^\"\\]|\\.)*)\"")
    used = {text for script in SCRIPTS.values() for text in literal.findall(script)}
    table = dict(re.findall(r'"((?:[^"\\]|\\.)*)": "((?:[^"\\]|\\.)*)"', FILES["chinese.js"]))

    assert len(used) > 150
    assert used - table.keys() == set()


def test_a_translation_has_the_values_of_its_text():
    table = re.findall(r'"((?:[^"\\]|\\.)*)": "((?:[^"\\]|\\.)*)"', FILES["chinese.js"])

    differing = {
        text: other
        for text, other in table
        if sorted(re.findall(r"\{\w+\}", text)) != sorted(re.findall(r"\{\w+\}", other))
    }
    assert differing == {}


def test_every_import_is_a_file_of_the_page():
    named = {
        name
        for text in SCRIPTS.values()
        for name in re.findall(r"(?:from|import\()\s*\"\./([\w.]+)\"", text)
    }

    assert named <= FILES.keys()
    assert {f"console/{name}" for name in ("app.js", "console.css")} <= set(
        re.findall(r"(?:href|src)=\"([^\"]+)\"", FILES["index.html"])
    )


@pytest.mark.parametrize("part", ['"Time range"', "dragover", "mediaDevices?."])
def test_what_several_pages_use_is_in_one_file(part):
    found = [name for name, text in SCRIPTS.items() if part in text and name != "chinese.js"]

    assert len(found) == 1


@pytest.mark.parametrize(
    "text,address,expected",
    [
        ("true", "0.0.0.0", True),
        ("false", "127.0.0.1", False),
        ("auto", "127.0.0.1", True),
        ("auto", "localhost", True),
        ("auto", "unix:/tmp/socket", True),
        ("auto", "0.0.0.0", False),
        ("auto", "192.168.1.4", False),
    ],
)
def test_auto_serves_the_console_to_this_machine_only(text, address, expected):
    flag = next(each for each in _flags() if each.name == "allow-console")
    console = ConsoleOptions(allow_console=flag.form.read("allow-console", text))
    options = Options.defaults(console, HttpOptions(http_address=address))

    assert is_on(options) is expected


def test_the_default_is_off_and_other_values_are_refused():
    flag = next(each for each in _flags() if each.name == "allow-console")

    assert flag.default is False
    with pytest.raises(UsageError, match="expected true, false or auto, got: maybe"):
        flag.form.read("allow-console", "maybe")


def _flags():
    from core import plugins

    return plugins.flags().rows
