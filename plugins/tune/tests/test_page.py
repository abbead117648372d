"""The commands of docs/operate/tune.md run, with short searches on a model of the test; and the example."""

import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sleeping_model import sleeper

from core.plugins.commands import run_command

BRIEFLY = ["--every", "100ms", "--minutes", "0.005"]
ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "operate" / "tune.md"
SHORT = [
    "-p",
    "10",
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
def test_the_commands_of_the_page_run(running, tmp_path, capsys, monkeypatch):
    running.add("digits", 0.001, 0.0)
    for _ in range(8):
        running.infer("digits", rows=2)
    time.sleep(0.3)  # records reach their file later
    shutil.copytree(running.recording, tmp_path / "traffic")
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "digits").symlink_to(running.repository / "digits")
    (tmp_path / "requests.json").write_text('{"data": [{"x": [1, 2, 3, 4]}]}')
    monkeypatch.chdir(tmp_path)
    assert len(commands()) >= 9
    http = running.address.authority
    for command in commands():
        words = shlex.split(command.replace("localhost:8000", http))
        # Of a few requests on a busy machine, no percentile is low.
        words[words.index("--slo") + 1] = "p50=500ms"
        assert words[:2] == ["core", "tune"]
        if "models/digits" in words:  # a server of its own would need seconds, each
            url = running.url if "grpc" in words else http
            words[words.index("models/digits")] = "digits"
            words = [*words, "-u", url]
        if "--write" in words:
            words[words.index("--write")] = "--write=models/digits/config.pbtxt"
        online = "--online" in words

        status = run_command("tune", [*words[2:], *(BRIEFLY if online else SHORT)])

        shown = capsys.readouterr()
        assert status == 0, shown
        assert ("beginning with" if online else "best: ") in shown.out, command


def test_the_example_fails_if_there_are_better_settings(repository):
    example = ROOT / "examples" / "tune_in_ci.py"
    if not example.exists():
        pytest.skip("the distribution alone")
    folder = sleeper(repository, "sleeper", 0.006, 0.0)
    flags = ["-p", "30", "--measurements", "5", "--instances", "1", "--batch-sizes", "1,8"]
    command = [sys.executable, str(example), str(folder), "p90=100ms", *flags, "--delays", "0"]

    done = subprocess.run(command, capture_output=True, text=True, timeout=120)

    assert done.returncode == 1, done.stderr
    assert "times as many requests" in done.stdout
    assert "+dynamic_batching { preferred_batch_size: [ 8 ] }" in done.stdout
