"""Load on a real server over each protocol. Its own statistics say how many requests it has answered."""

import json

import pytest
from core_bench.measure.target import Target
from core_bench.native.engine import HAS_GRPC
from core_bench.plan import Level, Pace, Sequences, Side, Timing, Tls

from core.errors import CoreError

TIMING = Timing(settle_s=0.0, warmup_s=0.0)
FOUR = Level(Pace.CLOSED, 4)


def load(side, level=FOUR, seconds=0.2, at_least=20, before_load=None):
    with Target(side, TIMING) as target:
        target.check()
        before = before_load() if before_load else 0
        tally, alive = target.generator(level).run(0.0, seconds, at_least)
    assert alive
    return (tally, before) if before_load else tally


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"json_input": True},
        {"json_output": True},
        {"json_input": True, "json_output": True},
        {"batch": 8},
        {"memory": 1000},
        {"protocol": "grpc"},
        {"protocol": "grpc", "batch": 8},
        {"protocol": "grpc", "streaming": True},
        {"protocol": "grpc", "memory": 1000},
        {"protocol": "grpc", "memory": 1000, "batch": 3, "streaming": True},
        {"protocol": "grpc", "compression": "gzip"},
        {"protocol": "grpc", "compression": "gzip", "streaming": True},
        {"input_data": ("zero",)},
        {"version": "1", "headers": (("x-a", "b"),), "parameters": {"p": 1, "q": "r"}},
    ],
    ids=str,
)
def test_every_answer_that_is_counted_is_one_of_the_server(served, more):
    protocol = more.get("protocol", "http")
    if protocol == "grpc" and not HAS_GRPC and more.get("compression", "none") == "none":
        pytest.skip("compiled without libnghttp2; the cases with compression test grpcio")
    tally, before = load(
        served.side("double", **more), before_load=lambda: served.successes("double")
    )

    assert not tally.errors
    assert tally.counts["completed"] >= 20
    assert served.successes("double") - before == tally.counts["all"]


def test_tls_of_grpc_leaves_http_as_it_is(served):
    tally = load(served.side("double", tls=Tls(on=True)))

    assert not tally.errors
    assert tally.counts["completed"] >= 20


def test_a_stream_of_generate_has_times_of_its_responses(served):
    tally = load(served.side("words", streaming=True, string_data="one two three"))

    assert not tally.errors
    assert tally.counts["responses"] == 3 * tally.counts["completed"]
    assert tally.first.count == tally.latency.count
    assert tally.gaps.count == 2 * tally.latency.count
    # The model waits for 2 ms before each word.
    assert tally.first.low >= 2e6 and tally.gaps.quantile(0.5) >= 1.5e6
    assert tally.latency.quantile(0.5) >= 6e6


@pytest.mark.skipif(not HAS_GRPC, reason="compiled without libnghttp2")
def test_a_decoupled_grpc_stream_ends_with_its_final_response(served):
    tally = load(served.side("words", "grpc", streaming=True, string_data="a b c d"))

    assert not tally.errors
    assert tally.counts["responses"] == 4 * tally.counts["completed"]


def test_the_same_by_grpcio(served):
    side = served.side(
        "words", "grpc", streaming=True, string_data="a b c d", compression="deflate"
    )
    tally = load(side)

    assert not tally.errors
    assert tally.counts["responses"] == 4 * tally.counts["completed"]


def test_an_open_loop_over_grpc(served):
    tally = load(served.side("double", "grpc"), Level(Pace.POISSON, 300), 0.5)

    assert not tally.errors
    assert tally.latency.count == pytest.approx(150, abs=50)


class TestSequences:
    WAYS = [("http", False), ("grpc", False), ("grpc", True)]

    @pytest.mark.parametrize(("protocol", "streaming"), WAYS)
    @pytest.mark.parametrize("level", [Level(Pace.CLOSED, 3), Level(Pace.CONSTANT, 300)], ids=str)
    def test_each_sequence_has_one_start_and_one_end_and_none_stays_open(
        self, served, protocol, streaming, level
    ):
        if protocol == "grpc" and not HAS_GRPC:
            pytest.skip("compiled without libnghttp2")
        sums = served.sums
        sums.lengths.clear()
        side = served.side(
            "sums", protocol, streaming=streaming, sequences=Sequences(5, 0.4, 1000, 0, 3)
        )

        tally = load(side, level)

        assert not tally.errors
        assert not sums.wrong
        assert not sums.open
        assert 3 <= min(sums.lengths) <= max(sums.lengths) <= 7
        assert sum(sums.lengths) >= tally.counts["completed"]

    def test_lengths_of_a_file_are_those_of_its_streams(self, served, tmp_path):
        path = tmp_path / "data.json"
        streams = [[{"x": [1]}] * 2, [{"x": [2]}] * 3]
        path.write_text(json.dumps({"data": streams}))
        served.sums.lengths.clear()

        side = served.side("sums", input_data=(str(path),), sequences=Sequences(0))
        load(side)

        assert set(served.sums.lengths) == {2, 3}

    def test_ids_stay_in_their_range(self, served):
        seen = set()
        inner = served.sums.open
        served.sums.open = Watched(seen)
        try:
            load(served.side("sums", sequences=Sequences(2, 0.0, 70, 75, 3)))
        finally:
            served.sums.open = inner

        assert seen == set(range(70, 75))

    def test_ids_of_large_numbers(self, served):
        seen = set()
        inner = served.sums.open
        served.sums.open = Watched(seen)
        first = 2**40 + 5
        try:
            load(served.side("sums", "grpc", sequences=Sequences(2, 0.0, first, 0, 3)))
        finally:
            served.sums.open = inner

        assert min(seen) == first and max(seen) < first + 2**20


class Watched(dict):
    """Keeps all keys that were ever there."""

    def __init__(self, seen):
        super().__init__()
        self.seen = seen

    def setdefault(self, key, value):
        self.seen.add(key)
        return super().setdefault(key, value)


def test_a_server_in_this_process(tmp_path):
    pytest.importorskip("backend_testing")
    folder = tmp_path / "same"
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_text(
        'backend: "identity" max_batch_size: 4 '
        'input { name: "INPUT0" data_type: TYPE_FP32 dims: [ 2 ] } '
        'output { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 2 ] }'
    )
    side = Side("same", "same", "", kind="in_process", repository=(str(tmp_path),), batch=2)

    tally = load(side)
    open_tally = load(side, Level(Pace.CONSTANT, 200), 0.3)

    assert not tally.errors and tally.counts["completed"] >= 20
    assert open_tally.latency.count == pytest.approx(60, abs=3)


def test_errors_are_counted_by_their_text(served):
    with Target(served.side("broken"), TIMING) as target:
        tally, alive = target.generator(FOUR).run(0.0, 0.1, 5)
        with pytest.raises(CoreError, match=r"503: .*no more room"):
            target.check()

    assert alive
    assert len(tally.errors) == 1
    assert sum(tally.errors.values()) == tally.counts["failed"] == tally.counts["all"]
    assert "no more room" in next(iter(tally.errors))
    assert tally.latency.count == 0


@pytest.mark.parametrize("streaming", [False, True])
def test_errors_over_grpc(served, streaming):
    with (
        Target(served.side("broken", "grpc", streaming=streaming), TIMING) as target,
        pytest.raises(CoreError, match="no more room"),
    ):
        target.check()
