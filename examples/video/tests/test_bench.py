"""bench.py: its search for the number of videos that one core carries, its bounds and its table."""

from types import SimpleNamespace

import pytest


@pytest.mark.parametrize(
    ("expected", "most", "tried"),
    [
        (4.2, 5, [3, 4, 5, 6]),
        (4.2, 2, [3, 2]),
        (4.2, 0, [3, 2, 1]),
        (0.3, 1, [1, 2]),
        (0.3, 0, [1]),
    ],
)
def test_no_number_of_videos_is_measured_twice(expected, most, tried):
    import bench

    asked = []

    def trial(who, streams):
        asked.append(streams)
        return SimpleNamespace(share=1.0 if streams <= most else 0.5)

    assert bench.carried(SimpleNamespace(trial=trial), "server", expected) == most
    assert asked == tried


@pytest.mark.parametrize(
    ("cpu", "middle", "told"),
    [
        ((10.0, 9.5), (30.0, 20.0), []),
        ((10.0, 9.4), (20.0, 30.0), ["the server's videos on one core are 0.940 of the loop's"]),
        (
            (9.0, 9.0),
            (30.2, 20.0),
            ["the server adds 10.2 ms from frame to tracks; --most-ms allow"],
        ),
        ((9.0, 8.0), (31.0, 20.0), ["--least expects 0.95", "the server adds 11.0 ms"]),
    ],
)
def test_each_bound_that_does_not_hold_is_told(cpu, middle, told):
    import bench

    found = bench.missed(bench.Pair(*cpu), None, bench.Pair(*middle), least=0.95, most_ms=10)

    assert len(found) == len(told)
    assert all(part in text for part, text in zip(told, found, strict=True))


@pytest.mark.parametrize(
    ("server", "loop", "told"),
    [
        (9, 9, []),
        (8, 9, []),  # 0.95 of 9 are 8 whole videos
        (7, 9, ["the server carried 7 videos, the loop 9; --least expects 8"]),
        (19, 20, []),
        (18, 20, ["the server carried 18 videos, the loop 20; --least expects 19"]),
        (0, 1, []),
        (3, 0, []),
    ],
)
def test_fewer_carried_videos_than_the_bound_are_told(server, loop, told):
    import bench

    same = bench.Pair(9.0, 9.0)

    assert bench.missed(same, bench.Pair(server, loop), same, least=0.95, most_ms=10) == told


def measured(monkeypatch, cpu_ms, late_ms, *arguments, carries=5):
    """Let bench.py measure these figures of the server; the loop has 8 ms of CPU, 20 ms and 5 videos."""
    import bench

    figures = {"server": (cpu_ms, late_ms, carries), "loop": (8.0, 20.0, 5)}

    def trial(who, streams):
        cpu, late, most = figures[who]
        return bench.Trial(1.0 if streams <= most else 0.5, cpu, [late])

    monkeypatch.setattr(bench, "Bench", lambda folder, seconds: SimpleNamespace(trial=trial))
    monkeypatch.setattr("sys.argv", ["bench.py", *arguments])
    return bench


def test_the_status_is_0_within_the_bounds_and_the_table_is_markdown(monkeypatch, capsys):
    measured(monkeypatch, 8.0, 21.5, "--skip-carried").main()

    assert capsys.readouterr().out.split("\n\n")[1].splitlines() == [
        "| | server | loop | server and loop |",
        "| --- | --- | --- | --- |",
        "| CPU time per frame | 8.00 ms | 8.00 ms | |",
        "| videos on one core, by CPU time | 5.0 | 5.0 | 1.000 |",
        "| from frame to tracks, median | 21.5 ms | 20.0 ms | +1.5 ms |",
        "| from frame to tracks, 99 % within | 21.5 ms | 20.0 ms | +1.5 ms |",
    ]


def test_the_status_is_1_outside_a_bound(monkeypatch):
    with pytest.raises(SystemExit, match=r"the server adds 12\.0 ms") as ended:
        measured(monkeypatch, 8.0, 32.0, "--skip-carried").main()

    assert ended.value.code not in (0, None)


def test_the_table_has_the_carried_videos_and_the_status_is_1_if_they_are_few(monkeypatch, capsys):
    with pytest.raises(SystemExit, match="the server carried 3 videos, the loop 5"):
        measured(monkeypatch, 8.0, 20.0, carries=3).main()

    assert "\n| videos carried on one core | 3 | 5 | |\n" in capsys.readouterr().out
