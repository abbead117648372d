"""What `make serve-chat` prints works as it stands: each command reaches the model."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("backend_testing.letters")

ROOT = Path(__file__).parents[3]
USAGE = ROOT / "examples" / "chat" / "usage.py"


def printed(*flags):
    """Return the blocks that are printed for these flags of the server: a command, a command, a program."""
    run = [sys.executable, USAGE, *flags]
    text = subprocess.run(run, capture_output=True, text=True, check=True, timeout=60).stdout
    blocks, block = [], []
    for line in [*text.splitlines(), ""]:
        if line.startswith("    "):
            block.append(line[4:])
        elif block:
            blocks.append("\n".join(block))
            block = []
    return blocks


@pytest.fixture
def commands(open_server, tmp_path):
    """Serve a model of the printed name; return the blocks for its port."""
    (tmp_path / "smollm2" / "1").mkdir(parents=True)
    (tmp_path / "smollm2" / "config.pbtxt").write_text(
        'backend: "letters" parameters { key: "text" value { string_value: "An apple." } }'
    )
    port = open_server(model_repository=[str(tmp_path)], model_control_mode="none")[1]
    return printed("--log-verbose=1", f"--http-port={port}")


def answer_of(*command, **options):
    return subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=60, **options
    ).stdout


def test_core_chat(commands):
    program, *arguments = commands[0].split()

    assert program == ".venv/bin/core"
    arguments += ["--model", "smollm2"]  # this server has more models than one
    found = answer_of(sys.executable, "-m", "core", *arguments, input="Name a fruit.\n")
    assert "An apple." in found


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_curl(commands):
    found = json.loads(answer_of("sh", "-c", commands[1]))

    assert found["choices"][0]["message"]["content"] == "An apple."


def test_the_package_openai(commands):
    pytest.importorskip("openai")

    assert answer_of(sys.executable, "-c", commands[2]) == "An apple.\n"


def test_the_usual_port_needs_no_address():
    assert printed()[0] == ".venv/bin/core chat"
    assert "http://localhost:8000/v1" in printed("--dev")[2]
