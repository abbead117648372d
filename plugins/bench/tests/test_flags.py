"""The flags of perf_analyzer, one by one: what each does here, or what to use instead."""

import pytest
from core_bench.flags.plan import plan_of
from core_bench.flags.refused import FLAGS, SERVICES
from core_bench.plan import Level, Objective, Pace, Sequences

from core.errors import CoreError


def plan(text, *more):
    return plan_of([*text.split(), *more])


def side(text):
    return plan(f"-m m {text}").sides[0]


SIDES = [
    ("-u h:1", "url", "h:1"),
    ("-i gRPC", "protocol", "grpc"),
    ("-i HTTP", "protocol", "http"),
    ("-x 3", "version", "3"),
    ("-b 4", "batch", 4),
    ("--service-kind openai", "kind", "openai"),
    ("--service-kind=triton_c_api --model-repository /m", "repository", ("/m",)),
    ("--service-kind openai --endpoint v1/completions", "endpoint", "v1/completions"),
    ("-i grpc --streaming", "streaming", True),
    ("-H A:b -H C:d:e", "headers", (("A", "b"), ("C", "d:e"))),
    ("-i grpc --grpc-compression-algorithm gzip", "compression", "gzip"),
    ("--input-data zero", "input_data", ("zero",)),
    ("-z", "input_data", ("zero",)),
    ("--input-data a.json --input-data b.json", "input_data", ("a.json", "b.json")),
    ("--data-directory d", "input_data", ("d",)),
    ("--shape x:3,4 --shape y:5", "shapes", {"x": (3, 4), "y": (5,)}),
    ("--shape a:b:7", "shapes", {"a:b": (7,)}),
    ("--string-length 9", "string_length", 9),
    ("--string-data hello", "string_data", "hello"),
    ("--input-tensor-format json", "json_input", True),
    ("--output-tensor-format=json", "json_output", True),
    ("--shared-memory none", "memory", 0),
    ("--shared-memory system", "memory", 102400),
    ("--shared-memory system --output-shared-memory-size 7", "memory", 7),
    ("--request-parameter a:1:int --request-parameter b:x:y:string", "parameters", {"a": 1, "b": "x:y"}),
    ("--request-parameter f:0.5:double --request-parameter t:true:bool", "parameters", {"f": 0.5, "t": True}),
    ("--sequence-length 30", "sequences", Sequences(30, 0.2, 1, 0, 4)),
    ("--sequence-length-variation 0", "sequences", Sequences(0, 0.0, 1, 0, 4)),
    ("--sequence-id-range 5:90 --num-of-sequences 6", "sequences", Sequences(0, 0.2, 5, 90, 6)),
]  # fmt: skip


@pytest.mark.parametrize(("text", "name", "value"), SIDES, ids=[text for text, _, _ in SIDES])
def test_flags_of_requests(text, name, value):
    assert getattr(side(text), name) == value


CLOSED, CONSTANT, POISSON = Pace.CLOSED, Pace.CONSTANT, Pace.POISSON
LEVELS = [
    ("", [(CLOSED, 1)], ""),
    ("-t 4", [(CLOSED, 4)], ""),
    ("--concurrency-range 4", [(CLOSED, 4)], ""),
    ("--concurrency-range 1:3", [(CLOSED, 1), (CLOSED, 2), (CLOSED, 3)], ""),
    ("--concurrency-range 2:8:3", [(CLOSED, 2), (CLOSED, 5), (CLOSED, 8)], ""),
    ("--concurrency-range 1:2 -l 5", [(CLOSED, 1), (CLOSED, 2)], "until"),
    ("--concurrency-range 2:0 --latency-threshold 5", [(CLOSED, 2)], "until"),
    ("--concurrency-range 1:64 --binary-search -l 5", [(CLOSED, 1), (CLOSED, 64)], "binary"),
    ("--request-rate-range 100.5", [(CONSTANT, 100.5)], ""),
    ("--request-rate-range 10:20:5", [(CONSTANT, 10), (CONSTANT, 15), (CONSTANT, 20)], ""),
    ("--request-rate-range 10 --request-distribution poisson", [(POISSON, 10)], ""),
    ("--find-knee", [(CLOSED, 1)], "knee"),
    ("--find-knee --request-rate-range 50", [(CONSTANT, 50)], "knee"),
]


@pytest.mark.parametrize(("text", "levels", "search"), LEVELS, ids=[text for text, _, _ in LEVELS])
def test_flags_of_the_load(text, levels, search):
    found = plan(f"m {text}")

    assert found.levels == [Level(pace, value) for pace, value in levels]
    assert found.search == search


def test_intervals_of_a_file_are_replayed_once_in_each_round(tmp_path):
    path = tmp_path / "intervals"
    path.write_text("1000\n2500\n")

    found = plan("m", "--request-intervals", str(path))

    (level,) = found.levels
    assert (level.pace, level.intervals_ns) == (Pace.INTERVALS, (1_000_000, 2_500_000))
    assert level.value == pytest.approx(2 / 0.0035)
    assert (found.timing.round_s, found.timing.settle_s) == (0.0035, 0.0)


TIMES = [
    ("", {"round_s": 1.0, "rounds": 6, "most_rounds": 6, "requests": 0, "stability": 0.0}),
    ("-p 500", {"round_s": 0.5, "settle_s": 0.05}),
    ("--measurement-interval 5000", {"round_s": 5.0, "settle_s": 0.2}),
    ("-p 2s", {"round_s": 2.0}),
    ("-r 3", {"rounds": 3, "most_rounds": 3}),
    ("--rounds 9 -r 3", {"rounds": 9, "most_rounds": 9}),
    ("-s 5", {"rounds": 6, "most_rounds": 10, "stability": 0.05}),
    ("--stability-percentage 5 --max-trials 20", {"rounds": 6, "most_rounds": 20}),
    ("--request-count 70", {"rounds": 1, "requests": 70, "settle_s": 0.0}),
    ("--measurement-mode count_windows", {"requests": 50}),
    (
        "--measurement-mode count_windows --measurement-request-count 9",
        {"requests": 9, "rounds": 6},
    ),
    ("--measurement-mode time_windows --measurement-request-count 9", {"requests": 0}),
    ("--threads 3 --warmup 5s --timeout 2m", {"threads": 3, "warmup_s": 5.0, "timeout_s": 120.0}),
    ("--async", {}),
    ("-a --max-threads 4", {}),
    ("--sync --serial-sequences", {}),
]


@pytest.mark.parametrize(("text", "expected"), TIMES, ids=[text for text, _ in TIMES])
def test_flags_of_the_measurement(text, expected):
    found = plan(f"m {text}").timing

    assert {name: getattr(found, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("text", "objective"),
    [
        ("-l 20", Objective(-1, 0.02)),
        ("-l 20 --percentile 95", Objective(0.95, 0.02)),
        ("--slo p99=20ms", Objective(0.99, 0.02)),
        ("--slo p99.9=1.5s", Objective(0.999, 1.5)),
        ("--slo average=500us", Objective(-1, 0.0005)),
    ],
)
def test_objectives(text, objective):
    found = plan(f"m {text}").objective

    assert found.quantile == pytest.approx(objective.quantile)
    assert found.seconds == pytest.approx(objective.seconds)


@pytest.mark.parametrize("flag", FLAGS)
def test_a_flag_that_is_not_supported_says_what_to_use(flag):
    for written in ([flag, "1"], [f"{flag}=1"]):
        with pytest.raises(CoreError) as error:
            plan_of(["m", *written])
        assert error.value.message == f"{flag} of perf_analyzer is not supported; {FLAGS[flag]}"


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_that_is_not_supported_says_what_to_use(service):
    with pytest.raises(CoreError, match=f"{service} is not supported"):
        plan(f"m --service-kind {service}")


WRONG = [
    ("", "name a model"),
    ("m -m n", "keep one"),
    ("m -i ws", "expected http or grpc"),
    ("m --service-kind x", "expected triton, openai or in_process"),
    ("m --service-kind openai -i grpc", "no gRPC"),
    ("m --service-kind openai --shared-memory system", "no shared memory"),
    ("m --shared-memory cuda", "use --shared-memory system"),
    ("m -t 2 --request-rate-range 3", "keep one"),
    ("m --concurrency-range 1:0", "needs --latency-threshold"),
    ("m --concurrency-range 1.5", "whole numbers"),
    ("m --binary-search", "needs a range"),
    ("m --slo p99=1ms -l 3", "keep one"),
    ("m --percentile 100", "between 0 and 100"),
    ("m --sequence-length-variation 101", "from 0 to 100"),
    ("m -t 10 --sequence-id-range 1:5", "4 ids, but 10 sequences"),
    ("m --input-data zero --input-data a.json", "either random, zero or files"),
    ("m --grpc-compression-algorithm gzip", "needs -i grpc"),
    ("m --find-knee --versus h:1", "leave out --versus"),
    ("m --concurrency-range 1:8 --binary-search -l 5 --versus h:1", "leave out --versus"),
]


@pytest.mark.parametrize(("text", "message"), WRONG, ids=[text for text, _ in WRONG])
def test_flags_that_contradict_each_other(text, message):
    with pytest.raises(CoreError, match=message):
        plan(text)


ILL_FORMED = [
    ("--concurrency-range 0", "expected START"),
    ("--concurrency-range nan", "expected START"),
    ("--request-rate-range 1:inf", "expected START"),
    ("--concurrency-range 4:2", "ends below its start"),
    ("--concurrency-range 1:4:0", "not above 0"),
    ("--shape x", "expected NAME:D1,D2"),
    ("--shape x:-1", "expected NAME:D1,D2"),
    ("-H nothing", "expected NAME:VALUE"),
    ("--slo p99", "expected for example p99=20ms"),
    ("--slo p99=20", "a number with a unit"),
    ("-b 0", "no whole number from 1"),
    ("--seed=-1", "no whole number from 0"),
    ("--request-count=-5", "no whole number from 0"),
    ("--request-parameter a:b:int", "expected NAME:VALUE:TYPE"),
    ("--sequence-id-range 0", "expected START or START:END"),
    ("--request-intervals /none", "cannot read the intervals"),
    ("--warmup 5", "a number with a unit"),
    ("--concurency-range 4", "did you mean --concurrency-range"),
]


@pytest.mark.parametrize(("text", "message"), ILL_FORMED, ids=[text for text, _ in ILL_FORMED])
def test_an_ill_formed_value_ends_with_status_2_and_says_what_is_expected(text, message, capsys):
    with pytest.raises(SystemExit) as ended:
        plan(f"m {text}")

    assert ended.value.code == 2
    assert message in capsys.readouterr().err


class TestVersus:
    def test_an_address_is_another_server(self):
        first, second = plan("m -u a:1 -b 2", "--versus", "b:2").sides

        assert (first.url, second.url) == ("a:1", "b:2")
        assert first.batch == second.batch == 2
        assert (first.name, second.name) == ("m (A)", "m (B: b:2)")

    def test_flags_change_only_what_they_name(self):
        first, second = plan("m -u a:1 --shape x:3", "--versus", "-i grpc -u a:2").sides

        assert (first.protocol, second.protocol) == ("http", "grpc")
        assert first.shapes == second.shapes == {"x": (3,)}

    def test_another_model(self):
        for text in ("m", "-m m", "-u m m"):
            for other in ("-m n", "-mn", "--model-name=n"):
                first, second = plan(text, f"--versus={other}").sides

                assert (first.model, second.model) == ("m", "n")
                assert first.url == second.url
