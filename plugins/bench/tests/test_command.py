"""The command as a person runs it: terminal, pipe, Ctrl-C, files, exit status."""

import json
import os
import pty
import signal
import subprocess
import sys

import pytest

from core.plugins.commands import run_command

CORE = [sys.executable, "-m", "core", "bench"]
QUICK = ["-p", "100", "--rounds", "2", "--warmup", "0.05s"]


def bench(*arguments, **more):
    return subprocess.run([*CORE, *arguments], capture_output=True, text=True, timeout=60, **more)


def test_a_table_in_a_pipe_has_no_progress_and_no_colours(known, tmp_path):
    files = [tmp_path / name for name in ("a.csv", "a.json", "a.html")]
    flags = [f"--{name}={path}" for name, path in zip(("json", "html"), files[1:], strict=True)]

    done = bench("m", "-u", known([1000]).url, *QUICK, "-f", str(files[0]), *flags)

    assert (done.returncode, done.stderr) == (0, "")
    assert "1 at once" in done.stdout and "\x1b" not in done.stdout and "\r" not in done.stdout
    assert files[0].read_text().startswith("Concurrency,Inferences/Second")
    assert json.loads(files[1].read_text())["cases"]
    assert files[2].read_text().startswith("<!doctype html>")


def test_json_on_the_standard_output_is_alone_there(known):
    done = bench("m", "-u", known([1000]).url, *QUICK, "--json", "-")

    assert json.loads(done.stdout)["cases"][0]["load"] == 1


class OnTerminal:
    """The command with a terminal as its standard error."""

    def __init__(self, *arguments):
        self.mine, terminal = pty.openpty()
        self.process = subprocess.Popen(
            [*CORE, *arguments], stderr=terminal, stdout=subprocess.PIPE, text=True
        )
        os.close(terminal)
        self.shown = b""

    def read_until(self, text):
        """Read what is shown until a text is there, or to the end."""
        try:
            while text is None or text not in self.shown:
                self.shown += os.read(self.mine, 4096)
        except OSError:
            os.close(self.mine)  # Linux says so when the other side has closed


def test_a_terminal_shows_progress(known):
    run = OnTerminal("m", "-u", known([1000]).url, *QUICK)
    run.read_until(None)
    run.process.communicate(timeout=30)

    assert b"1 at once, round 1 of 2" in run.shown and b"answers" in run.shown
    assert run.shown.endswith(b"\r\x1b[K")


def test_ctrl_c_prints_what_was_measured_so_far(known):
    run = OnTerminal("m", "-u", known([1000]).url, "-p", "300", "--rounds", "100")
    run.read_until(b"round 3")
    run.process.send_signal(signal.SIGINT)
    run.read_until(None)
    output, _ = run.process.communicate(timeout=30)

    assert run.process.returncode == 130
    assert "medians of" in output and "1 at once" in output and "ended by Ctrl-C" in output
    assert b"Traceback" not in run.shown


def test_ctrl_c_ends_the_wait_for_a_first_answer(known):
    run = OnTerminal("m", "-u", known([60_000_000]).url)
    run.read_until(b"first request: 0 answers")
    run.process.send_signal(signal.SIGINT)
    run.read_until(None)
    run.process.communicate(timeout=30)

    assert run.process.returncode == 130
    assert b"before anything was measured" in run.shown


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        ([], 2, "usage: core bench MODEL"),
        (["--help"], 0, "--concurrency-range"),
        (["m", "-u", "127.0.0.1:1"], 1, "no server answers at 127.0.0.1:1"),
        (["m", "--unknown"], 2, "--unknown is not known"),
        (["m", "--json", "/none/x.json"], 1, "cannot write '/none/x.json'"),
        (["m", "--collect-metrics"], 1, "--collect-metrics of perf_analyzer is not supported"),
    ],
)
def test_wrong_command_lines(arguments, status, text, capsys):
    try:
        found = run_command("bench", arguments)
    except SystemExit as ended:
        found = ended.code

    shown = capsys.readouterr()
    assert found == status
    assert text in shown.out + shown.err


def test_errors_of_requests_make_the_status_1(known):
    server = known([0, 10_000_000])

    done = bench("m", "-u", server.url, *QUICK, "--timeout", "1s")

    assert done.returncode == 1
    assert "no answer within --timeout" in done.stdout
