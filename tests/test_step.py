"""`.ci/step.py` says what a command does and for how long, and shows all of its output when it fails."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

STEP = Path(__file__).parents[1] / ".ci" / "step.py"


def step(*command):
    return subprocess.run(
        [sys.executable, STEP, "count", *command], capture_output=True, text=True, timeout=60
    )


def test_a_command_that_succeeds_has_two_lines_in_a_pipe():
    done = step("echo", "one")

    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r"    … s  count\n +\d+ s  count\n", done.stdout)


def test_a_command_that_fails_shows_its_output_and_its_status():
    done = step("sh", "-c", "echo one; echo two >&2; exit 3")

    assert done.returncode == 3
    assert done.stdout.endswith("one\ntwo\n")
    assert done.stderr == "count: `sh -c echo one; echo two >&2; exit 3` ended with 3\n"


def test_a_program_that_is_missing_is_named():
    done = step("no-such-program")

    assert done.returncode == 127
    assert "no-such-program" in done.stderr and "Traceback" not in done.stderr


def test_a_terminal_shows_the_last_output_while_the_command_runs(tmp_path):
    seen = tmp_path / "seen"
    os.mkfifo(seen)
    script = f"echo compiling one; read line < '{seen}'; echo done"
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, STEP, "count", "sh", "-c", script], stdout=theirs, stderr=theirs
    )
    os.close(theirs)

    text = ""
    while "count: compiling one" not in text:
        text += os.read(ours, 4096).decode()
    seen.write_text("go on\n")

    assert process.wait(60) == 0
    os.close(ours)
