"""python -m benchmarks.gpu.host_part: a timeline in place of a GPU, and the server beside a loop on it."""

import time

import pytest

pytest.importorskip("torch")
pytest.importorskip("backend_pytorch")

from benchmarks.gpu import host_part
from benchmarks.gpu.host_part import Timeline, measure


def test_an_engine_does_one_thing_after_the_other():
    timeline = Timeline()
    now = time.perf_counter()

    first, second = timeline.add("compute", 10.0), timeline.add("compute", 1.0)
    copied = timeline.add("out", 2.0, after=second)

    assert first >= now + 10 and second == first + 1 and copied == second + 2
    assert timeline.add("in", 1.0) < first


def test_each_case_is_compared_with_the_loop(monkeypatch):
    monkeypatch.setattr(host_part, "CASES", ((1, 3e-3), (2, 5e-3)))

    rows = list(measure(0.1, 5))

    assert [row["images"] for row in rows] == [1, 2]
    assert rows[0]["bare_p50_ms"] >= 3 and rows[1]["bare_p50_ms"] >= 5
    assert all(0 < row["ratio"] < 1.1 for row in rows)
