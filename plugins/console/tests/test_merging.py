"""Rows of several processes become one."""

from core_console.merging import finished, merged

ROW = {
    "model": "m",
    "version": 1,
    "state": "READY",
    "reason": "",
    "serves": True,
    "batch": 8,
    "ok": 2,
    "total_ns": 30,
    "wait_s": 0.1,
    "batches": {"1": 2},
    "lanes": {"m_0": [1, 0.5]},
}


def test_the_rows_of_one_process_stay_as_they_are():
    assert merged({0: [ROW]}) == [ROW]


def test_counters_add_up_and_facts_do_not():
    other = {**ROW, "ok": 3, "wait_s": 0.3, "batches": {"1": 1, "4": 1}}

    (row,) = merged({1: [ROW], 2: [other]})

    assert (row["ok"], row["total_ns"], row["batch"], row["wait_s"]) == (5, 60, 8, 0.3)
    assert row["batches"] == {"1": 3, "4": 1}
    assert row["lanes"] == {"worker 1 · m_0": [1, 0.5], "worker 2 · m_0": [1, 0.5]}


def test_the_worst_state_is_that_of_the_model():
    failed = {"model": "m", "version": 1, "state": "UNAVAILABLE", "reason": "no memory"}

    (row,) = merged({1: [ROW], 2: [failed]})

    assert (row["state"], row["reason"], row["ok"]) == ("UNAVAILABLE", "no memory", 2)


def test_a_version_at_rest_in_one_worker_serves_in_another():
    at_rest = {"model": "m", "version": 1, "state": "UNAVAILABLE", "reason": "unloaded: memory"}
    loading = {**at_rest, "state": "LOADING", "reason": "waits for memory"}

    for answers in ({1: [ROW], 2: [at_rest]}, {1: [at_rest], 2: [ROW]}):
        (row,) = merged(answers)
        assert (row["state"], row["reason"], row["ok"]) == ("READY", "", 2)
    (row,) = merged({1: [at_rest], 2: [loading]})
    assert (row["state"], row["reason"]) == ("LOADING", "waits for memory")


def test_quantiles_of_all_processes_come_from_all_durations():
    def spread(cells, low, high):
        return {**ROW, "spread": [low, high, cells]}

    from core.native.distribution import QuantileSketch

    fast, slow = QuantileSketch(), QuantileSketch()
    for _ in range(96):
        fast.observe(1_000_000)
    for _ in range(4):
        slow.observe(50_000_000)

    rows = []
    for sketch in (fast, slow):
        low, high, cells = sketch.recent()
        rows.append(spread({str(cell): count for cell, count in cells.items()}, low, high))
    (row,) = finished(merged({1: rows[:1], 2: rows[1:]}))

    p50, p95, p99 = row["quantiles_ms"]
    assert abs(p50 - 1) < 0.02 and abs(p95 - 1) < 0.02 and abs(p99 - 50) < 1
    assert "spread" not in row


def test_a_version_without_a_recent_request_has_no_quantiles():
    (row,) = finished([{**ROW, "spread": [0, 0, {}]}])

    assert "quantiles_ms" not in row and "spread" not in row
