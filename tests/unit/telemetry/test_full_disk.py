"""A full disk: the server continues and reports it at intervals, and the content of its files stays readable.

In separate processes a limit for the size of files replaces the disk: it ends a write in the middle.
"""

import json
import logging
import re
import subprocess
import sys
import textwrap

from core.telemetry import losses
from core.telemetry.log_file import LogFile
from core.telemetry.losses import Losses

START = """
import asyncio, contextlib, logging, os, resource, signal, sys, time
from core.options import Options
from core.telemetry import log
from frontends.shared.access_log import AccessLog, AccessLogEntry
from core.telemetry.tracing.trace import Trace
from core.telemetry.tracing.writer import TraceFiles

logger = logging.getLogger("core")
path = sys.argv[1]

@contextlib.contextmanager
def full_at(size):
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

def until(condition):
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)
"""


def stderr_of(path, script):
    """Run a script; the lines that it writes on stderr."""
    found = subprocess.run(
        [sys.executable, "-c", START + textwrap.dedent(script), str(path)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert found.returncode == 0, found.stderr
    return found.stderr.splitlines()


def test_lost_lines_of_a_full_disk_are_reported_once_on_stderr(tmp_path):
    path = tmp_path / "server.log"

    said = stderr_of(
        path,
        """
        log.configure(Options.defaults(log_file=path))
        logger.info("before")
        with full_at(os.stat(path).st_size + 20):
            for _ in range(1000):
                logger.info("while it is full")
        logger.info("after")
        """,
    )

    assert said == [
        f"the log file '{path}' cannot be written: File too large; 1 lines of the log are lost"
    ]
    before, torn, gap, after = path.read_text().splitlines()
    assert before.endswith('] "before"')
    assert len(torn) == 20
    assert re.match(r"W\d{4} .*\"1000 lines of the log were lost before this one", gap)
    assert re.match(r"I\d{4} .*\"after\"$", after)


def test_a_log_file_without_its_folder_loses_lines_and_raises_no_error(tmp_path, capfd):
    folder = tmp_path / "logs"
    folder.mkdir()
    handler = LogFile(str(folder / "server.log"))
    handler.handle(logging.makeLogRecord({"msg": "before"}))
    (folder / "server.log").unlink()
    folder.rmdir()

    handler.handle(logging.makeLogRecord({"msg": "lost"}))
    handler.handle(logging.makeLogRecord({"msg": "lost"}))
    folder.mkdir()
    handler.handle(logging.makeLogRecord({"msg": "after"}))
    handler.close()

    assert (folder / "server.log").read_text().splitlines()[-1] == "after"
    assert len(capfd.readouterr().err.splitlines()) == 1


def test_the_access_log_counts_lines_lost_to_a_full_disk(tmp_path):
    path = tmp_path / "access.log"

    said = stderr_of(
        path,
        """
        log.configure(Options.defaults())
        access = AccessLog(path)
        with full_at(1000):
            for _ in range(2000):
                access.write(AccessLogEntry("http", "127.0.0.1:5000", "/v2/models/m/infer", "POST"), 200, 0)
            until(lambda: access._lost)
        access.write(AccessLogEntry("http", "127.0.0.1:5000", "/v2/models/last/infer", "POST"), 200, 0)
        access.close()
        """,
    )

    assert len(said) == 1 and "cannot be written: File too large; " in said[0]
    torn, found = 0, []
    for line in path.read_text().splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            torn += 1
    lost = sum(line.get("dropped", 0) for line in found)
    assert torn <= 1 and lost > 0
    assert lost + sum("path" in line for line in found) == 2001
    assert found[-1]["path"] == "/v2/models/last/infer"


def test_a_trace_file_stays_complete_on_a_full_disk(tmp_path):
    path = tmp_path / "trace"

    said = stderr_of(
        path,
        """
        def trace(id):
            return Trace(id, "m", 1, "", ("TIMESTAMPS",))

        async def run():
            log.configure(Options.defaults())
            files = TraceFiles()
            files.append(path, [trace(1)])
            until(lambda: os.path.exists(path) and os.path.getsize(path))
            with full_at(os.path.getsize(path) + 10):
                for id in range(2, 100):
                    files.append(path, [trace(id)])
                files.save_numbered(path, [trace(id) for id in range(100)])
                until(lambda: sum(each.total for each in files._losses.values()) == 198)
            files.append(path, [trace(100)])
            await files.close()

        asyncio.run(run())
        """,
    )

    ids = [entry["id"] for entry in json.loads(path.read_text()) if "model_name" in entry]
    assert ids == [1, 100]
    assert not (tmp_path / "trace.0").exists()
    assert len(said) == 1 and "failed to write the trace file" in said[0]


def test_losses_are_reported_at_intervals_with_their_count():
    said = []
    now = [0.0]
    found = Losses(said.append, "lines are", lambda: now[0])

    found.add("it is full", 2)
    for _ in range(10):
        found.add("it is full", 1)
    now[0] = losses.SAYS_EACH_S
    found.add("it is away", 1)
    found.add("it is away", 5)
    found.flush()
    found.flush()

    assert said == [
        "it is full; 2 lines are lost",
        "it is away; 11 lines are lost",
        "it is away; 5 lines are lost",
    ]
    assert found.end() == 18
    assert found.end() == 0
