"""The documentation matches the code."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from core import plugins
from frontends.pages import commands_page, options_page

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")
MODELS = ROOT / "examples" / "models"


def test_the_page_of_options_is_made_from_the_table_of_flags():
    assert (ROOT / "docs" / "operate" / "options.md").read_text() == options_page(), (
        "run `make docs`"
    )


def test_the_page_of_commands_has_the_current_table():
    text = (ROOT / "docs" / "operate" / "commands.md").read_text()

    assert text == commands_page(text), "run `make docs`"


@pytest.mark.parametrize("flag", plugins.flags().rows, ids=lambda flag: flag.name)
def test_every_flag_has_a_description(flag):
    assert len(flag.help) > 10
    assert flag.help.endswith(".")
    assert not flag.idle.endswith(".")


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_a_page_names_is_there(page):
    text = (ROOT / page).read_text()
    # A path of this repository, in backticks or as a link; `backends/x` is an example.
    named = re.findall(
        r"[`(]((?:core|frontends|backends|plugins|clients|tests|docs|examples|\.ci)/[\w./-]+)[`)]",
        text,
    )

    missing = [name for name in named if not (ROOT / name).exists() and not name.endswith("/x")]
    assert missing == []


@pytest.mark.parametrize("page", PAGES)
def test_every_verb_that_a_page_names_is_in_the_makefile(page):
    verbs = set(re.findall(r"`make ([a-z-]+)", (ROOT / page).read_text()))
    rules = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))

    assert verbs - rules == set()


def test_the_contributors_page_has_every_verb():
    rules = re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE)
    text = (ROOT / "CONTRIBUTING.md").read_text()

    assert [rule for rule in rules if f"`make {rule}" not in text] == []


def test_the_page_about_models_in_your_own_process_runs(tmp_path):
    page = (ROOT / "docs" / "serve" / "in-process.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    shutil.copytree(MODELS / "digits", tmp_path / "models" / "digits")
    (tmp_path / "page.py").write_text("\n".join(blocks))

    done = subprocess.run(
        [sys.executable, "page.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("(1, 10)\n1 mine {}\n")
    assert "Kind.INVALID input 'pixels' is a float" in done.stdout
    assert "[0, 1, 2]\n['grpc', 'http']\n" in done.stdout


def test_the_commands_of_a_readme_are_run_in_their_order(tmp_path):
    requests = (ROOT / "README.md").read_text().partition("While it serves")[2]
    commands = f"$ touch installed    # once\n$ core serve {MODELS / 'digits'}"
    readme = tmp_path / "README.md"
    readme.write_text(f"```console\n{commands}\n```\n{requests}")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    programs = Path(sys.executable).parent

    done = subprocess.run(
        [sys.executable, ROOT / ".ci" / "smoke.py", readme],
        env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "$ touch installed\n1 requests answered as the README says" in done.stdout
    assert (tmp_path / "installed").exists()


def test_a_server_answers_the_requests_of_the_readme_as_described(tmp_path):
    shutil.copytree(MODELS, tmp_path / "models")

    done = subprocess.run(
        [
            sys.executable,
            ROOT / ".ci" / "smoke.py",
            ROOT / "README.md",
            tmp_path / "models",
            Path(sys.executable).parent / "core-serve",
        ],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "answered as the README says" in done.stdout
