"""Whole measurements against known servers, and the reports of them."""

import csv
import dataclasses
import io
import json
import re
import xml.etree.ElementTree as ET

import pytest
from core_bench.command import run
from core_bench.load.plan import WirePlan
from core_bench.measure.cpu import ServerCpu, used
from core_bench.measure.errors import merged, readable
from core_bench.measure.result import RoundResult
from core_bench.model.address import Address
from core_bench.native.engine import Tally
from core_bench.plan import Level, Pace, Plan, Timing
from core_bench.report.csv_file import csv_text
from core_bench.report.json_file import json_text
from core_bench.report.outcome import comparisons, notes
from core_bench.report.page import page
from core_bench.report.table import print_report
from rich.console import Console

TIMING = Timing(round_s=0.4, rounds=3, most_rounds=3, settle_s=0.05, warmup_s=0.0)
# The columns of perf_analyzer 2.51, written by its flag -f.
PERF_ANALYZER = (
    "Inferences/Second,Client Send,Network+Server Send/Recv,Server Queue,Server Compute Input,"
    "Server Compute Infer,Server Compute Output,Client Recv,p50 latency,p90 latency,p95 latency,p99 latency"
)


def text_of(outcome):
    console = Console(file=io.StringIO(), highlight=False, width=200)
    print_report(outcome, console)
    return console.file.getvalue()


@pytest.fixture(scope="module")
def compared(start_known):
    """Compare a server of 20 ms with one of 40 ms, at two levels."""
    servers = [start_known([delay]) for delay in (20_000, 40_000)]
    sides = [server.side(name=name) for server, name in zip(servers, "AB", strict=True)]
    outcome = run(Plan(sides, [Level(Pace.CLOSED, 2), Level(Pace.CLOSED, 8)], TIMING))
    yield outcome
    for server in servers:
        server.end()


def test_two_servers_are_compared_round_by_round(compared):
    for each in comparisons(compared):
        # Other programs delay both alike.
        assert 0.4 < each.rate.median < 0.9
        assert 1.2 < each.p50.median < 2.5
        assert each.rate.low <= each.rate.median <= each.rate.high
        assert each.rate.coverage == 0.75  # of three rounds
    assert [each.level for each in comparisons(compared)] == ["2 at once", "8 at once"]


def test_a_round_without_a_value_has_no_ratio(compared):
    first, second = (compared.of(side)[0] for side in compared.sides)
    silent = Tally()
    silent.begin(0, 10**9)
    cut = dataclasses.replace(first, rounds=[RoundResult(silent, None, None), *first.rounds[1:]])
    outcome = dataclasses.replace(compared, results=[cut, second])

    (found,) = comparisons(outcome)

    ratios = [
        other.latency_s(0.5) / one.latency_s(0.5)
        for one, other in zip(first.rounds[1:], second.rounds[1:], strict=True)
    ]
    assert (found.p50.low, found.p50.high) == (min(ratios), max(ratios))


def test_each_round_has_other_random_times_and_both_sides_have_the_same(known, monkeypatch):
    seeds, at = [], WirePlan.at

    def watched(self, *arguments):
        plan = at(self, *arguments)
        seeds.append(plan.seed)
        return plan

    monkeypatch.setattr(WirePlan, "at", watched)
    sides = [known([0]).side(name=name) for name in "AB"]

    run(Plan(sides, [Level(Pace.POISSON, 200)], dataclasses.replace(TIMING, round_s=0.05)))

    rounds = seeds[2:]  # behind the first request of each side
    assert rounds[::2] == rounds[1::2]
    assert len(set(rounds)) == 3


def test_the_table_has_a_line_for_each_level_and_the_comparison(compared):
    text = text_of(compared)

    assert len(re.findall(r"^2 at once", text, re.MULTILINE)) == 3
    assert "B divided by A, round by round" in text
    assert re.search(r"0\.\d\d \(0\.\d\d … 0\.\d\d\)", text)


def test_csv_has_the_columns_of_perf_analyzer(compared):
    cases = compared.of(compared.sides[0])

    plain = csv_text(cases, -1, False)
    rows = list(csv.DictReader(io.StringIO(plain)))

    assert plain.splitlines()[0] == f"Concurrency,{PERF_ANALYZER}"
    assert [row["Concurrency"] for row in rows] == ["2", "8"]
    assert 70 < float(rows[0]["Inferences/Second"]) < 105  # 100, unless the machine is busy
    assert float(rows[0]["p50 latency"]) == pytest.approx(20_000, rel=0.1)


def test_csv_has_more_columns_on_request(compared):
    head = csv_text(compared.of(compared.sides[0]), 0.42, True).splitlines()[0]

    assert head.startswith(
        f"Concurrency,{PERF_ANALYZER},p42 latency,request/response,response wait"
    )
    assert "Server CPU/Request" in head


def test_inferences_are_rows(compared):
    (case, *_) = compared.of(compared.sides[0])
    batched = dataclasses.replace(case, side=dataclasses.replace(case.side, batch=4))

    plain, rows = (
        next(csv.DictReader(io.StringIO(csv_text([each], -1, False)))) for each in (case, batched)
    )

    assert float(rows["Inferences/Second"]) == pytest.approx(
        4 * float(plain["Inferences/Second"]), rel=1e-4
    )


def test_json_has_everything(compared):
    document = json.loads(json_text(compared))

    assert [side["name"] for side in document["sides"]] == ["A", "B"]
    assert len(document["cases"]) == 4 and len(document["comparisons"]) == 2
    case = document["cases"][0]
    assert case["answers_per_s"]["low"] <= case["answers_per_s"]["median"]
    for each in case["rounds"]:
        counts = each["histograms"]["latency"]["buckets_ns"]
        assert sum(count for _, count in counts) == pytest.approx(each["completed"], abs=4)


def test_the_page_loads_nothing_and_shows_names_as_text(compared):
    sides = [dataclasses.replace(compared.sides[0], name="<b>&"), compared.sides[1]]
    results = [
        dataclasses.replace(each, side=sides[0] if each.side is compared.sides[0] else sides[1])
        for each in compared.results
    ]
    text = page(dataclasses.replace(compared, sides=sides, results=results), "core bench '<x>'")

    assert not re.search(r"(?:src|href|url|@import)\s*[=(:]|<script|https?://", text)
    assert "<b>&" not in text and "&lt;b&gt;&amp;" in text
    charts = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert len(charts) >= 4
    for each in charts:
        root = ET.fromstring(each)
        numbers = [
            float(n) for e in root.iter() for n in re.findall(r"-?[\d.]+", e.get("points", ""))
        ]
        assert all(-1 <= number <= 561 for number in numbers)


def test_processor_time_of_the_server_is_that_of_its_process(known):
    server = known([0])

    outcome = run(Plan([server.side()], [Level(Pace.CLOSED, 4)], TIMING))
    before = ServerCpu(Address("127.0.0.1", server.port)).seconds()

    case = outcome.results[0]
    total = sum(each.server_cpu_s for each in case.rounds)
    assert set(before) == {server.process.pid}
    assert 0 < total <= before[server.process.pid]
    assert 0.2 < case.cpu_us().median < 200
    assert outcome.cpu_reason == ""


def test_a_server_elsewhere_has_no_processor_time():
    cpu = ServerCpu(Address("192.0.2.1", 80))

    assert cpu.reason == "the server is on another machine"
    assert used(cpu.seconds(), cpu.seconds()) is None
    assert used({1: 2.0}, {}) is None
    assert used({1: 2.0}, {1: 3.0, 7: 0.5}) == 1.5


def test_the_servers_own_times_are_those_of_its_statistics(served):
    outcome = run(Plan([served.side("double")], [Level(Pace.CLOSED, 2)], TIMING))

    case = outcome.results[0]
    parts = [case.part_us(part).median for part in ("queue", "compute_infer")]
    assert all(part > 0 for part in parts)
    assert sum(parts) < case.latency(-1).median * 1e6
    assert "time in the server" in text_of(outcome)
    assert case.rows_per_execution().median >= 1


def test_rounds_are_added_until_the_interval_is_as_narrow_as_asked(known):
    timing = dataclasses.replace(TIMING, round_s=0.1, rounds=2, most_rounds=5)
    side = known([10_000]).side()

    wide = run(Plan([side], [Level(Pace.CLOSED, 4)], dataclasses.replace(timing, stability=10.0)))
    narrow = run(Plan([side], [Level(Pace.CLOSED, 4)], dataclasses.replace(timing, stability=1e-9)))

    assert len(wide.results[0].rounds) == 2
    assert len(narrow.results[0].rounds) == 5


def test_a_round_of_so_many_requests(known):
    timing = dataclasses.replace(TIMING, requests=30, settle_s=0.0, rounds=1, most_rounds=1)
    side = known([1000]).side()

    closed = run(Plan([side], [Level(Pace.CLOSED, 3)], timing)).results[0]
    rate = run(Plan([side], [Level(Pace.CONSTANT, 200)], timing)).results[0]

    assert 30 <= closed.count("all") <= 33
    assert rate.count("all") == 30


def test_a_rate_above_the_capacity_is_named(known):
    timing = dataclasses.replace(TIMING, connections=1)

    outcome = run(Plan([known([20_000]).side()], [Level(Pace.CONSTANT, 200)], timing))

    assert any("the server did not keep up" in each for each in notes(outcome))
    assert "≥" in text_of(outcome)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ('HTTP 400 {"error":"no such\\nshape"}', "400: no such shape"),
        ('HTTP 429 {"error":{"message":"slow down"}}', "429: slow down"),
        ("HTTP 502 <html>", "502: <html>"),
        ("HTTP 500 ", "500: without a text"),
        ('HTTP 500 {"error":"cut off he', "500: cut off he"),
        ("grpc 3 bad%20input%0A", "INVALID_ARGUMENT: bad input"),
        ('event {"error":"late"}', "late"),
        ("stream it failed", "it failed"),
        ("timeout", "no answer within --timeout"),
        ("cannot connect: Connection refused", "cannot connect: Connection refused"),
    ],
)
def test_errors_as_a_person_reads_them(raw, text):
    assert readable(raw) == text


def test_errors_with_the_same_text_are_one():
    assert merged({'HTTP 400 {"error":"a"}': 2, 'HTTP 400 {"error": "a"}': 3, "b": 9}) == {
        "b": 9,
        "400: a": 5,
    }
