"""The output of load generators is parsed into a result."""

import os

import pytest

from benchmarks.load import generator, generator_of, h2load, perf_analyzer, wrk
from benchmarks.load.generator import Failed, Load
from benchmarks.missing import Missing

H2LOAD = """\
finished in 1.00s, 100.00 req/s, 10.00KB/s
requests: 100 total, 104 started, 100 done, {ok} succeeded, {failed} failed, 0 errored, 0 timeout
status codes: {ok} 2xx, 0 3xx, 0 4xx, 0 5xx
traffic: 20.00KB (20480) total, 2.00KB (2048) headers (space savings 90.00%), 10.25KB ({data}) data
"""


def test_wrks_last_line_is_read():
    found = wrk.read("Running 1s test\nresult 1000 2000000 0 300000 40 90\n", [200], connections=16)

    assert found == Load(requests=1000, errors=0, seconds=2.0, p50_us=40, p99_us=90)


def test_answers_with_an_error_status_do_not_count_as_answers():
    found = wrk.read("result 1000 1000000 10 300000 40 90\n", [200], connections=16)

    assert (found.requests, found.errors) == (990, 10)


def test_answers_that_are_shorter_than_the_right_one_fail_the_round():
    with pytest.raises(Failed, match="1000 answers had 5000 bytes, expected at least 200000"):
        wrk.read("result 1000 1000000 0 5000 40 90\n", [200], connections=16)


def test_answers_of_several_sizes_have_all_of_them_but_for_those_in_flight():
    sizes = [100, 200, 300]

    assert wrk.least_bytes(7, sizes, connections=1) == 600 + 600 + 100 - 200
    assert wrk.least_bytes(2, sizes, connections=16) == 0
    with pytest.raises(Failed, match="3000 answers had 500000 bytes, expected at least 596800"):
        wrk.read("result 3000 1000000 0 500000 40 90\n", sizes, connections=16)


def test_a_wrk_without_result_fails_with_its_output():
    with pytest.raises(Failed, match="unable to connect"):
        wrk.read("unable to connect to 127.0.0.1", [200], connections=16)


def test_the_output_of_h2load_is_parsed():
    text = H2LOAD.format(ok=100, failed=0, data=100 * 105)

    found = h2load.read(text, [10, 20, 30, 40], seconds=1, answer_bytes=100)

    assert found == Load(requests=100, errors=0, seconds=1, p50_us=20, p99_us=40)


def test_grpc_errors_that_h2load_counts_as_successes_are_found_by_their_size():
    text = H2LOAD.format(ok=100, failed=0, data=60 * 105)

    found = h2load.read(text, [10], seconds=1, answer_bytes=100)

    assert (found.requests, found.errors) == (60, 40)


def test_requests_that_h2load_saw_fail_are_errors():
    found = h2load.read(
        H2LOAD.format(ok=97, failed=3, data=97 * 105), [10], seconds=1, answer_bytes=100
    )

    assert (found.requests, found.errors) == (97, 3)


def test_perf_analyzers_table_gives_rate_and_latencies():
    table = "Concurrency,Inferences/Second,p50 latency,p99 latency\n4,500.0,10,20\n"

    found = perf_analyzer.read(table, requests=1000, errors=0, took_s=3.0)

    assert found == Load(requests=1000, errors=0, seconds=2.0, p50_us=10, p99_us=20)


@pytest.mark.parametrize(
    ("protocol", "words"),
    [
        ("http-json", "no program 'wrk' on the PATH; try: apt-get install wrk"),
        ("grpc-h2load", "no program 'h2load' on the PATH; try: apt-get install nghttp2-client"),
        ("perf-http", "PERF_ANALYZER='' names no program"),
    ],
)
def test_a_generator_that_is_not_installed_is_missing_by_name(
    protocol, words, tmp_path, monkeypatch
):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("PERF_ANALYZER", raising=False)

    with pytest.raises(Missing, match=words):
        generator_of(protocol, tmp_path, core=0)


def test_a_failed_program_is_reported_with_its_last_output():
    with pytest.raises(Failed, match=r"sh ended with 3: out of luck"):
        core = min(os.sched_getaffinity(0))
        generator.output_of(["sh", "-c", "echo out of luck >&2; exit 3"], core, 1.0)
