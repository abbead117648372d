"""The process of a Python file ends with its load and with the server, without DALI."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from backend_dali import serializing
from backend_dali.serializing import serialized

SERVER = """
import os, sys, threading, time
from pathlib import Path
from backend_dali.serializing import serialized

def load():
    try:
        serialized(Path(sys.argv[1]))
    except ValueError as error:
        print(error)

threading.Thread(target=load).start()
while not Path(sys.argv[1]).with_name("pid").exists():
    time.sleep(0.01)
if sys.argv[2] == "killed":
    os.kill(os.getpid(), 9)
"""
NOTE_PID = """
import os, subprocess, sys, time
from pathlib import Path
{before}
Path("new").write_text(str({pid}))
os.rename("new", "pid")
{after}
"""


@pytest.fixture
def file(tmp_path):
    """file(pid, before="", after=""): a Python file that writes a pid to the file `pid`."""

    def write(pid, before="", after=""):
        path = tmp_path / "dali.py"
        path.write_text(NOTE_PID.format(pid=pid, before=before, after=after))
        return path

    return write


def await_end(folder):
    """Return when the process of the file `pid` has ended; fail after 20 s."""
    stat = Path("/proc") / (folder / "pid").read_text() / "stat"
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            if stat.read_text().rpartition(")")[2].split()[0] == "Z":
                return
        except (FileNotFoundError, ProcessLookupError):
            return
        time.sleep(0.01)
    os.kill(int(stat.parent.name), signal.SIGKILL)
    pytest.fail("the process is alive")


@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_the_process_ends_with_the_server(file, tmp_path, how):
    path = file("os.getpid()", after="time.sleep(300)")

    done = subprocess.run(
        [sys.executable, "-c", SERVER, path, how],
        env={**os.environ, "TMPDIR": str(tmp_path)},  # a killed server leaves its folder
        stdout=subprocess.PIPE,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == (-signal.SIGKILL if how == "killed" else 0)
    assert done.stdout == ("" if how == "killed" else "the server ends before it\n")
    await_end(tmp_path)


def test_what_the_process_has_started_ends_with_it(file, tmp_path):
    start = "child = subprocess.Popen(['sleep', '300'])"

    with pytest.raises(ValueError, match="OSError: no disk"):
        serialized(file("child.pid", start, "raise OSError('no disk')"))

    await_end(tmp_path)


def test_a_file_that_runs_for_too_long_is_an_error(file, monkeypatch):
    monkeypatch.setattr(serializing, "_PATIENCE_S", 0.1)

    with pytest.raises(ValueError, match=r"it runs for more than 0\.1 s"):
        serialized(file("os.getpid()", before="time.sleep(300)"))


def test_errors_of_any_bytes_and_much_output(file):
    after = "os.write(1, bytes(1 << 20)); os.write(2, b'\\xff bad\\n'); os._exit(3)"

    with pytest.raises(ValueError, match=r"^\ufffd bad$"):
        serialized(file("0", after=after))
