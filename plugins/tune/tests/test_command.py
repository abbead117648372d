"""The command as a person runs it, with real servers."""

import csv
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from core_bench.plan import Side
from core_tune import tuning
from core_tune.observation import Refused
from core_tune.queueing.arrivals import Arrivals
from core_tune.server.meter import LiveMeter
from core_tune.server.own import OwnServer
from core_tune.settings import Settings
from sleeping_model import QUICK, sleeper

from core.plugins.commands import run_command

CORE = [sys.executable, "-m", "core", "tune"]


@pytest.fixture
def tune(capsys):
    """Run the command in this process; return its status, standard output and standard error."""

    def run(*arguments):
        status = run_command("tune", [str(each) for each in arguments])
        shown = capsys.readouterr()
        return status, shown.out, shown.err

    return run


def test_a_folder_is_tuned_and_its_configuration_written(repository, tune):
    folder = sleeper(repository, "sleeper", 0.008, 0.0005)
    report = repository.parent / "report.json"
    page, lines = repository.parent / "report.html", repository.parent / "report.csv"
    flags = ["--slo", "p90=200ms", "--instances", "1,2", "--batch-sizes", "1,8", "--delays", "0"]

    reports = ["--json", report, "--html", page, "--csv", lines]
    status, output, errors = tune(folder, *flags, *QUICK, "--write", *reports)

    assert status == 0, output + errors
    written = (folder / "config.pbtxt").read_text()
    assert "preferred_batch_size: [ 8 ]" in written and written.startswith("# A model that sleeps.")
    assert f"written: {folder / 'config.pbtxt'}" in errors
    assert "sleeper, highest rate with p90 ≤ 200 ms" in output
    assert "+dynamic_batching { preferred_batch_size: [ 8 ] }" in output
    assert "no failed request" in output and "\x1b" not in output
    found = json.loads(report.read_text())
    assert found["best"]["batch"] == 8 and len(found["measurements"]) <= 8
    limits = {
        (each["instances"], each["batch"]): each["requests_per_s"] for each in found["settings"]
    }
    assert limits[found["best"]["instances"], 8] > 2 * limits[1, 1]
    assert found["times"]["KIND_CPU"]["execution_s"] == pytest.approx(0.008, rel=0.3)
    check_page(page.read_text(), found)
    rows = list(csv.DictReader(lines.open()))
    assert len(rows) == len(found["measurements"])
    assert {row["best"] for row in rows if row["batch"] == "8"} >= {"1"}
    assert all(float(row["answers_per_s"]) > 0 for row in rows)


def check_page(text, found):
    """Check that a page has everything in itself."""
    assert text.startswith("<!doctype html>") and text.endswith("</html>\n")
    assert text.count("<svg") == 4
    for title in ("p90 by answers per second, all measurements", "The model of the queue"):
        assert title in text
    assert '<span class="added">+dynamic_batching { preferred_batch_size: [ 8 ] }</span>' in text
    assert "http" not in text.replace("http://www.w3.org", "") and "<script" not in text
    assert text.count("<circle") >= len(found["measurements"])


class Client:
    """Sends requests until `end`, which raises if one failed."""

    def __init__(self, server, model):
        self._server, self._model, self._ended = server, model, threading.Event()
        self.answers, self.errors = 0, []
        self._thread = threading.Thread(target=self._send)
        self._thread.start()

    def _send(self):
        while not self._ended.is_set():
            try:
                self._server.infer(self._model)
                self.answers += 1
            except OSError as error:
                self.errors.append(str(error))
            time.sleep(0.01)

    def end(self):
        self._ended.set()
        self._thread.join()
        assert self.answers and self.errors == []


def test_a_running_server_loses_no_request_and_gets_its_settings_back(running, tune):
    before = running.ask("/v2/models/sleeper/config")
    client = Client(running, "sleeper")

    flags = ["--slo", "average=200ms", "--instances", "1,2", "--delays", "0", *QUICK]
    status, output, errors = tune(
        "sleeper", "-u", running.address.authority, *flags, "--measurements", "6"
    )

    client.end()
    assert status == 0, output + errors
    assert "config.pbtxt (tuned)" in output
    assert running.ask("/v2/models/sleeper/config") == before


def test_an_impossible_objective_says_what_was_reached(running, tune):
    flags = ["--slo", "p50=10ms", "--instances", "1", *QUICK, "--measurements", "3"]
    status, output, _ = tune("sleeper", "-u", running.address.authority, *flags)

    assert status == 1
    assert "no settings keep p50 ≤ 10.0 ms; the lowest p50 is 2" in output


@pytest.mark.skipif(
    not os.environ.get("CORE_TEST_TUNE"), reason="it starts many processes: `make bench-tune`"
)
def test_another_number_of_workers_starts_the_server_anew(repository):
    pytest.importorskip("core_workers")
    sleeper(repository, "sleeper", 0.01, 0.0)
    with OwnServer(repository, "sleeper", "http") as server:
        side, arrivals = Side("sleeper", "sleeper", server.url), Arrivals(0.5, 0.1)
        with LiveMeter(side, arrivals, round_s=0.1, server=server) as meter:
            seen = meter.in_flight(Settings(1, 1, workers=2), 16)

            assert (server.workers, meter.now.workers) == (2, 2)
            assert seen.answered > 100  # more than one instance can
            assert seen.busy > 1


def test_failed_requests_are_an_error(running, tune):
    file = running.add("broken", 0.001, 0.0) / "1" / "model.py"
    file.write_text(file.read_text().replace("time.sleep", "raise ValueError('broken wire')  #"))
    running.load("broken")

    status, _, errors = tune("broken", "-u", running.address.authority, "--slo", "p99=1s", *QUICK)

    assert status == 1
    assert "error: " in errors and "broken wire" in errors


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_sigterm_end_the_server_too(repository, number):
    folder = sleeper(repository, "sleeper", 0.004, 0.0)
    process = subprocess.Popen(
        [*CORE, str(folder), "--slo", "p99=1s"], stderr=subprocess.PIPE, text=True
    )
    children = f"/proc/{process.pid}/task/{process.pid}/children"
    end = time.monotonic() + 30
    while not (started := open(children).read().split()) and time.monotonic() < end:  # noqa: SIM115
        time.sleep(0.05)

    process.send_signal(number)
    _, errors = process.communicate(timeout=60)

    assert process.returncode == 130
    assert "ended by Ctrl-C or SIGTERM before anything was found" in errors
    end = time.monotonic() + 10  # an orphan that has ended is there until init takes note
    while (left := [pid for pid in started if is_running(pid)]) and time.monotonic() < end:
        time.sleep(0.05)
    assert left == []


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        ([], 2, "usage: core tune MODEL|FOLDER"),
        (["--help"], 0, "--batch-sizes"),
        (["m"], 1, "needs an objective, such as --slo p99=20ms"),
        (["--slo", "p99=20ms"], 1, "name a model, or its folder"),
        (["m", "--slo", "20ms"], 2, "'20ms' is no objective"),
        (["m", "--instance", "2"], 2, "--instance is not known; did you mean --instances?"),
        (["m", "--slo", "p99=1s", "--instances", "0"], 2, "'0' is no whole number from 1"),
        (["m", "--slo", "p99=1s", "--minutes", "-1"], 2, "'-1' is no number of minutes"),
        (["m", "--slo", "p99=1s", "-u", "127.0.0.1:1"], 1, "no server answers at 127.0.0.1:1"),
        (["no/such", "--slo", "p99=1s"], 1, "'no/such' is no folder of a model"),
        (["m", "--slo", "p99=1s", "--write"], 1, "--write needs the path of config.pbtxt"),
        (["m", "--slo", "p99=1s", "--json", "/none/x"], 1, "cannot write '/none/x'"),
        (["m", "--slo", "p99=1s", "--serve-flags", "x"], 1, "--serve-flags starts a server"),
        (["m", "--slo", "p99=1s", "--workers", "2"], 1, "--workers restarts the server"),
        (["m", "--slo", "p99=1s", "--kinds", "tpu"], 2, "'tpu' is no kind of instances"),
        (["m", "--slo", "p99=1s", "--wait-for", "half"], 2, "'half' is no size to wait for"),
    ],
)  # fmt: skip
def test_wrong_command_lines(arguments, status, text, capsys):
    try:
        found = run_command("tune", arguments)
    except SystemExit as ended:
        found = ended.code

    shown = capsys.readouterr()
    assert found == status
    assert text in shown.out + shown.err


def test_a_repository_is_no_model(repository, capsys):
    sleeper(repository, "a", 0, 0)

    assert run_command("tune", [str(repository), "--slo", "p99=1s"]) == 1
    assert f"name one of its models: {repository}/a" in capsys.readouterr().err


def test_batches_above_max_batch_size_are_refused(running, tune):
    flags = ["--slo", "p99=1s", "--batch-sizes", "16"]
    status, _, errors = tune("sleeper", "-u", running.address.authority, *flags)

    assert status == 1
    assert "but the max_batch_size of model 'sleeper' is 8" in errors


def test_a_backend_without_threads_has_none_to_choose(running, tune):
    flags = ["--slo", "p99=1s", "--framework-threads", "2"]
    status, _, errors = tune("sleeper", "-u", running.address.authority, *flags)

    assert status == 1
    assert "backend 'python' of model 'sleeper' declares no parameter for threads" in errors


def test_apply_leaves_a_running_server_with_the_best(running, tune):
    flags = ["--slo", "average=200ms", "--instances", "1", "--batch-sizes", "8", "--delays", "0"]

    status, output, errors = tune(
        "sleeper", "-u", running.address.authority, *flags, *QUICK, "--measurements", "5", "--apply"
    )

    assert status == 0, output + errors
    config = running.ask("/v2/models/sleeper/config")
    assert config["dynamic_batching"]["preferred_batch_size"] == [8]


def test_apply_says_that_the_server_refuses_the_best_settings(running, tune, monkeypatch):
    apply, searched = LiveMeter.apply, []

    def refuse(meter, settings):
        if searched:
            raise Refused("no more memory")
        apply(meter, settings)

    def search(*arguments):
        outcome = tuned(*arguments)
        searched.append(outcome)
        return outcome

    tuned = tuning.tune
    monkeypatch.setattr(tuning, "tune", search)
    monkeypatch.setattr(LiveMeter, "apply", refuse)
    flags = ["--slo", "average=1s", "--instances", "1", "--batch-sizes", "8", "--delays", "0"]

    status, _, errors = tune(
        "sleeper", "-u", running.address.authority, *flags, *QUICK, "--measurements", "3", "--apply"
    )

    assert status == 1
    assert "the server refuses the best settings of model 'sleeper' (1 instance" in errors
    assert "no more memory" in errors


def test_a_model_that_does_not_load_shows_the_log(repository, capsys):
    folder = sleeper(repository, "a", 0, 0)
    (folder / "1" / "model.py").write_text("import nothing_of_this_name")

    assert run_command("tune", [str(folder), "--slo", "p99=1s"]) == 1
    assert "nothing_of_this_name" in capsys.readouterr().err
