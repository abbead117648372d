"""The commands of docs/operate/tune.md run, with short searches on a model of the test; and the example."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from core_tune.server.own import OwnServer
from sleeping_model import sleeper

from core.plugins.commands import run_command

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "operate" / "tune.md"
SHORT = [
    "-p",
    "20",
    "--measurements",
    "3",
    "--instances",
    "1",
    "--batch-sizes",
    "1,8",
    "--delays",
    "0",
]


def commands():
    if not PAGE.exists():  # the distribution alone
        return []
    blocks = re.findall(
        r"<!-- tested by: \S+test_page.py -->\n```sh\n(.*?)```", PAGE.read_text(), re.S
    )
    return [line.partition("#")[0].strip() for block in blocks for line in block.splitlines()]


@pytest.mark.skipif(not PAGE.exists(), reason="the distribution alone")
def test_the_commands_of_the_page_run(repository, tmp_path, capsys, monkeypatch):
    """One test: they share a server."""
    sleeper(repository, "digits", 0.001, 0.0)
    (tmp_path / "requests.json").write_text('{"data": [{"x": [1, 2, 3, 4]}]}')
    monkeypatch.chdir(tmp_path)
    assert len(commands()) >= 6
    with (
        OwnServer(repository, "digits", "http") as http,
        OwnServer(repository, "digits", "grpc") as grpc,
    ):
        for command in commands():
            words = shlex.split(command.replace("localhost:8000", http.url))
            # Of a few requests on a busy machine, no percentile is low.
            words[words.index("--slo") + 1] = "p50=2s"
            assert words[:2] == ["core", "tune"]
            if "models/digits" in words:  # a server of its own would need seconds, each
                url = grpc.url if "grpc" in words else http.url
                words[words.index("models/digits")] = "digits"
                words = [*words, "-u", url]
            if "--write" in words:
                words[words.index("--write")] = "--write=models/digits/config.pbtxt"

            status = run_command("tune", [*words[2:], *SHORT])

            shown = capsys.readouterr()
            assert status == 0, shown
            assert "best: " in shown.out, command


def test_the_example_fails_if_there_are_better_settings(repository):
    example = ROOT / "examples" / "tune_in_ci.py"
    if not example.exists():
        pytest.skip("the distribution alone")
    folder = sleeper(repository, "sleeper", 0.006, 0.0)
    flags = ["-p", "30", "--measurements", "5", "--instances", "1", "--batch-sizes", "1,8"]
    command = [sys.executable, str(example), str(folder), "p90=200ms", *flags, "--delays", "0"]

    done = subprocess.run(command, capture_output=True, text=True, timeout=120)

    assert done.returncode == 1, done.stderr
    assert "times as many requests" in done.stdout
    assert "+dynamic_batching { preferred_batch_size: [ 8 ] }" in done.stdout
