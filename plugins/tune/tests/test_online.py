"""core tune --online on servers in virtual time, whose load changes."""

import json
import threading

import numpy as np
import pytest
from core_tune.observation import Refused, Size
from core_tune.online.keeper import Keeper
from core_tune.online.loop import keep, settle
from core_tune.online.window import Estimator, Window
from core_tune.queueing.arrivals import Arrivals
from core_tune.queueing.limit import Traffic
from core_tune.settings import Settings
from sleeping_model import CONFIG, sleeper
from virtual_server import Hidden, Run

from core.plugins.commands import run_command

OBJECTIVE_S = 0.05
EVERY_S = 10.0
FOUR_CORES = Hidden(0.010, 0.0, 1.0, 4.0, 8.0, 1e-5, 0.05, 0.0, 0.0)


class VirtualServer:
    """Serves a rate that depends on the time."""

    def __init__(self, hidden, rate_at):
        self.hidden, self.rate_at, self.now = hidden, rate_at, Settings(1, 1)
        self.clock, self.used, self.refused = 0.0, [], set()
        self.times_refused = {}
        self.random = np.random.default_rng(4)
        self.p99 = []

    def sleep(self, seconds):
        self.clock += seconds

    def window(self):
        rate = self.rate_at(self.clock)
        run = Run(self.hidden, self.now, 1.0, self.random)
        due = np.cumsum(self.random.exponential(1 / rate, round(rate * EVERY_S)))
        seconds = run.open(due)
        self.used.append(self.now.instances)
        self.p99.append(float(np.quantile(seconds, 0.99)))
        sizes = [Size(rows, n, total / n) for rows, (n, total) in run.batches.items()]
        answered = len(due) / float((due + seconds).max())
        return Window(self.now, answered, float(seconds.mean()), sizes, self.clock, EVERY_S)

    def apply(self, settings):
        if self.times_refused.get(settings.instances, 0):
            self.times_refused[settings.instances] -= 1
            raise Refused("a moment")
        if settings.instances in self.refused:
            raise Refused("no memory")
        self.now = settings


def kept(server, minutes):
    traffic = Traffic(1, 1, Arrivals(0.99, OBJECTIVE_S), requests=400)
    choices = [Settings(n, 1) for n in (1, 2, 3, 4)]
    keeper = Keeper(Estimator(traffic, 4), choices, "p99", OBJECTIVE_S)
    events = keep(
        server,
        keeper,
        every_s=EVERY_S,
        seconds=60 * minutes,
        watch=lambda text: None,
        sleep=server.sleep,
        clock=lambda: server.clock,
    )
    return [*events, *settle(server, keeper)]


def test_instances_follow_the_load():
    server = VirtualServer(FOUR_CORES, lambda at: 130 if 60 < at < 200 else 12)

    events = kept(server, 6)

    assert server.used[0] == 1
    assert min(server.used[9:20]) >= 2 and np.median(server.p99[9:20]) <= OBJECTIVE_S
    assert server.used[-1] == 1
    assert [each.settings.instances for each in events if each.changed][-1] == 1
    assert " of 50.0 ms with 1 instance, no batching; " in events[0].reason
    assert " are expected with 2 instances" in events[0].reason


def test_a_calm_server_is_left_alone():
    server = VirtualServer(FOUR_CORES, lambda at: 20)

    assert kept(server, 2) == []


class Thrashing(Hidden):
    """Two executions at once take more than three times as long as one."""

    def seconds(self, rows, busy, threads):
        return 0.010 * (1 + 2.3 * (busy - 1))


def test_what_makes_it_worse_is_undone_and_not_tried_again_soon():
    server = VirtualServer(Thrashing(0.01, 0.0, 1.0, 1.0, 8.0, 1e-5, 0.0, 0.0, 0.0), lambda at: 85)

    events = kept(server, 4)

    changes = [each for each in events if each.changed]
    assert [each.settings.instances for each in changes][1] == 1
    assert changes[1].reason.startswith("undone: p99 ")
    assert sum(server.used) - len(server.used) <= 4  # windows with a second instance


def test_a_change_after_which_the_model_answers_hardly_anything_is_undone():
    server = VirtualServer(FOUR_CORES, lambda at: 160 if server.now.instances == 1 else 1)

    events = kept(server, 3)

    assert any(each.reason.startswith("undone: 3 windows with fewer than 20") for each in events)
    assert server.now.instances == 1


def test_a_way_back_that_is_refused_is_tried_again():
    server = VirtualServer(Thrashing(0.01, 0.0, 1.0, 1.0, 8.0, 1e-5, 0.0, 0.0, 0.0), lambda at: 85)
    server.times_refused = {1: 2}

    events = kept(server, 4)

    refused = [each for each in events if "refuses 1 instance" in each.reason]
    assert len(refused) == 2 and server.now.instances == 1


def test_a_change_that_the_end_leaves_without_a_judgement_is_undone():
    server = VirtualServer(FOUR_CORES, lambda at: 160)

    events = kept(server, 2 * EVERY_S / 60)

    assert [each.changed for each in events] == [True, True]
    assert "the end came before" in events[-1].reason and server.now.instances == 1


def test_settings_that_the_server_refuses_are_reported_and_others_are_tried():
    server = VirtualServer(FOUR_CORES, lambda at: 160)
    server.refused = {2}

    events = kept(server, 3)

    assert any("the server refuses 2 instances, no batching: no memory" in e.reason for e in events)
    assert server.used[-1] >= 3


def test_few_requests_say_nothing():
    server = VirtualServer(FOUR_CORES, lambda at: 1.5)

    assert kept(server, 2) == []


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--kinds", "cpu"], "--online changes what changes in place; leave out --kinds"),
        (["--html", "x.html"], "leave out --html"),
        (["-u", "127.0.0.1:1"], "no server answers at 127.0.0.1:1"),
    ],
)
def test_wrong_command_lines(arguments, text, capsys):
    assert run_command("tune", ["m", "--slo", "p99=20ms", "--online", *arguments]) == 1
    assert text in capsys.readouterr().err


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_batches_change_in_place_if_the_model_forms_batches(running, protocol, capsys):
    pytest.importorskip("core_settings")
    batching = CONFIG + "dynamic_batching { preferred_batch_size: [ 1 ] }\n"
    for name, config in ((f"{protocol}-batches", batching), (f"{protocol}-none", CONFIG)):
        sleeper(running.repository, name, 0.01, 0.0, config)
        running.load(name)
    url = running.url if protocol == "grpc" else running.address.authority
    flags = ["-u", url, "-i", protocol, "--slo", "p99=25ms", "--online", "--batch-sizes", "2"]
    flags += ["--every", "300ms", "--minutes", "0.01"]

    assert run_command("tune", [f"{protocol}-batches", *flags]) == 0
    assert run_command("tune", [f"{protocol}-none", *flags]) == 1
    assert "only by live settings, which need a server with" in capsys.readouterr().err


def test_a_running_server_gets_more_instances_while_it_serves(running, capsys, tmp_path):
    running.add("busy", 0.01, 0.0)
    report = tmp_path / "online.json"
    flags = ["--slo", "p99=25ms", "--online", "--every", "300ms", "--minutes", "0.04"]
    flags += ["--instances", "1,2,4", "--json", str(report)]
    failed, ended = [], threading.Event()

    def send():
        while not ended.is_set():
            try:
                running.infer("busy")
            except OSError as error:
                failed.append(error)

    clients = [threading.Thread(target=send) for _ in range(4)]
    for each in clients:
        each.start()
    try:
        status = run_command("tune", ["busy", "-u", running.address.authority, *flags])
    finally:
        ended.set()
        for each in clients:
            each.join()

    shown = capsys.readouterr().out
    assert status == 0 and failed == []
    assert "p99 ≤ 25.0 ms, beginning with 1 instance" in shown
    found = json.loads(report.read_text())
    assert found["before"]["instances"] == 1 and found["now"]["instances"] > 1, shown
    assert (
        "the model keeps " in shown
        and "lasts until the next load" in shown
        and "+instance_group" in shown
    )
    assert found["events"][0]["changed"] is True
