"""The commands of docs/operate/check.md run, and its example shows what they print."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from repository_check.broken_models import X, Y, onnx_model, write

from frontends.commands.check.finding import RULES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "operate" / "check.md").read_text()
COMMANDS = [
    line.partition("   #")[0].strip()
    for block in re.findall(r"```sh\n(.*?)```", PAGE, re.S)
    for line in block.splitlines()
]


@pytest.fixture
def folder(tmp_path):
    """A folder with examples/models, and the broken model of the page."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    text = "# the shop\nmax_batch_sise: 4\n" + X.replace("FP32", "INT64") + Y
    write(tmp_path / "models" / "shop", onnx_model(text))
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_page_runs(command, folder):
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": path},
    )

    assert done.stderr == ""
    assert done.returncode == (0 if "examples" in command or "--write" in command else 1)


def test_the_page_has_commands():
    assert len(COMMANDS) >= 5


def test_the_page_names_each_rule():
    table = PAGE.partition("| rule |")[2].partition("\n\n")[0]

    assert set(
        re.findall(r"`([a-z]+)`", "".join(row.split("|")[1] for row in table.splitlines()[2:]))
    ) == set(RULES)


def test_the_example_of_the_page_is_what_the_check_prints(folder, check, monkeypatch):
    monkeypatch.chdir(folder)
    shown = PAGE.partition("line and column:\n\n```text\n")[2].partition("```")[0]

    printed = check("models")[1]

    def plain(text):
        return re.sub(r":\d+:\d+:", ":", text)

    assert plain(printed) == plain(shown)
