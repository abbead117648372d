"""Response cache, warmup and rate limiter."""

import json
import threading
import time

import numpy as np
import pytest
from conformance.model import Model
from conformance.protocol import data_of, grpc_input, http_input, http_output, tensor
from conformance.server import StartError


def numbers(*values):
    return {"inputs": [tensor("INPUT0", list(values), [1, len(values)], "INT32")]}


def execution(response):
    return data_of(response, "EXECUTION")[0]


@pytest.fixture(scope="module")
def server(launch):
    return launch(
        [
            "cached",
            "plain",
            Model(
                "not_cached",
                "cached",
                config="""
backend: "python"
max_batch_size: 4
input [ { name: "INPUT0" data_type: TYPE_INT32 dims: [ -1 ] } ]
output [
  { name: "OUTPUT0" data_type: TYPE_INT32 dims: [ -1 ] },
  { name: "EXECUTION" data_type: TYPE_INT32 dims: [ 1 ] }
]
""",
            ),
            "warmed",
        ],
        "--cache-config=local,size=4194304",
    )


def cache_counts(server, model="cached"):
    found = server.stats(model)["inference_stats"]
    return found["cache_hit"]["count"], found["cache_miss"]["count"]


def test_same_request_is_answered_from_the_cache(server):
    first = server.infer("cached", numbers(1, 2, 3))
    second = server.infer("cached", numbers(1, 2, 3))
    assert execution(first) == execution(second)
    assert data_of(second) == [1, 2, 3]


def test_other_data_is_not_answered_from_the_cache(server):
    assert execution(server.infer("cached", numbers(5))) != execution(
        server.infer("cached", numbers(6))
    )


def test_other_shape_of_the_same_data_is_not_answered_from_the_cache(server, launcher):
    if launcher.kind == "triton":
        pytest.skip("the original server looks at the data alone")
    first = server.infer("cached", {"inputs": [tensor("INPUT0", [1, 2, 3, 4], [1, 4], "INT32")]})
    second = server.infer("cached", {"inputs": [tensor("INPUT0", [1, 2, 3, 4], [2, 2], "INT32")]})
    assert execution(first) != execution(second)


def test_hits_and_misses_are_counted(server):
    hits, misses = cache_counts(server)
    server.infer("cached", numbers(77))
    assert cache_counts(server) == (hits, misses + 1)
    server.infer("cached", numbers(77))
    server.infer("cached", numbers(77))
    assert cache_counts(server) == (hits + 2, misses + 1)


def test_hit_is_a_success_but_no_inference_and_no_execution(server):
    server.infer("cached", numbers(88))
    before = server.stats("cached")
    server.infer("cached", numbers(88))
    after = server.stats("cached")
    assert (
        after["inference_stats"]["success"]["count"] - before["inference_stats"]["success"]["count"]
        == 1
    )
    assert after["inference_count"] == before["inference_count"]
    assert after["execution_count"] == before["execution_count"]


def test_model_without_the_setting_is_not_cached(server):
    assert execution(server.infer("not_cached", numbers(1))) != execution(
        server.infer("not_cached", numbers(1))
    )
    assert cache_counts(server, "not_cached") == (0, 0)


def test_cache_is_shared_by_http_and_grpc(server):
    first = server.infer("cached", numbers(99, 98))
    second = server.grpc_client().infer(
        "cached", [grpc_input("INPUT0", np.array([[99, 98]], np.int32))]
    )
    assert second.as_numpy("EXECUTION")[0][0] == execution(first)


def test_cached_answer_may_be_binary(server):
    sample = np.array([[41, 42]], np.int32)
    client = server.http_client()
    answers = [
        client.infer(
            "cached",
            [http_input("INPUT0", sample)],
            outputs=[http_output("OUTPUT0", binary_data=True)],
        ).as_numpy("OUTPUT0")
        for _ in range(2)
    ]
    assert np.array_equal(answers[0], sample) and np.array_equal(answers[1], sample)


def test_request_id_is_of_the_request_and_not_of_the_cache(server):
    server.infer("cached", {**numbers(55), "id": "first"})
    assert server.infer("cached", {**numbers(55), "id": "second"}).json["id"] == "second"


def test_cache_metrics_count_for_the_model(server):
    def values():
        return [
            server.metric(f"nv_cache_num_{kind}_per_model", model="cached", version="1")
            for kind in ("hits", "misses")
        ]

    hits, misses = values()
    server.infer("cached", numbers(66))
    server.infer("cached", numbers(66))
    assert values() == [hits + 1, misses + 1]


def test_answer_larger_than_the_cache_is_still_right(server):
    sample = np.arange(2_000_000, dtype=np.int32).reshape(1, -1)
    client = server.http_client()
    for _ in range(2):
        result = client.infer(
            "cached",
            [http_input("INPUT0", sample)],
            outputs=[http_output("OUTPUT0", binary_data=True)],
        )
        assert np.array_equal(result.as_numpy("OUTPUT0"), sample)


def test_old_answers_leave_a_full_cache(server):
    client = server.http_client()
    for number in range(40):
        sample = np.full((1, 50_000), number, np.int32)
        result = client.infer(
            "cached",
            [http_input("INPUT0", sample)],
            outputs=[http_output("OUTPUT0", binary_data=True)],
        )
        assert np.array_equal(result.as_numpy("OUTPUT0"), sample)
    hits, misses = cache_counts(server)
    client.infer("cached", [http_input("INPUT0", np.full((1, 50_000), 0, np.int32))])
    assert cache_counts(server) == (hits, misses + 1)


def test_cached_model_without_a_cache_is_not_cached(launch_once):
    try:
        server = launch_once(["cached"])
    except StartError:
        return
    assert execution(server.infer("cached", numbers(1))) != execution(
        server.infer("cached", numbers(1))
    )


def seen_before(server):
    response = server.infer(
        "warmed",
        {
            "inputs": [
                tensor("INPUT0", [1, 2], [1, 2], "INT32"),
                tensor("TEXT", ["x"], [1, 1], "BYTES"),
            ]
        },
    )
    return json.loads(data_of(response)[0])


def test_warmup_runs_every_sample_before_the_model_is_ready(server):
    """A sample stands for batch_size rows and is run count times."""
    seen = seen_before(server)
    assert sum(entry["rows"] for entry in seen) == 1 + 3 * 2 + 1
    rows = [row for entry in seen for row in entry["numbers"]]
    assert rows[0] == [0, 0]
    assert rows[-1] == [7, 11]


def test_random_warmup_data_is_not_all_zero(launch_once):
    server = launch_once(["warmed"])
    rows = [row for entry in seen_before(server) for row in entry["numbers"]]
    assert any(row != [0, 0] for row in rows[1:7])


def limited(name, resources, priority=0, count=1):
    return Model(
        name,
        "slow",
        config=f"""
backend: "python"
max_batch_size: 0
input [ {{ name: "MS" data_type: TYPE_INT32 dims: [ 1 ] }} ]
output [ {{ name: "OUTPUT0" data_type: TYPE_INT32 dims: [ 1 ] }} ]
instance_group [ {{
  count: {count} kind: KIND_CPU
  rate_limiter {{ resources [ {resources} ] priority: {priority} }}
}} ]
""",
    )


LIMITED = [
    limited("wide", '{ name: "R" count: 4 }', count=1),
    limited("narrow", '{ name: "R" count: 2 }', count=1),
    limited("narrow_too", '{ name: "R" count: 2 }', count=1),
    limited("first", '{ name: "R" count: 4 }', priority=1),
    limited("last", '{ name: "R" count: 4 }', priority=2),
]


@pytest.fixture(scope="module")
def limiter(launch):
    return launch(LIMITED, "--rate-limit=execution_count", "--rate-limit-resource=R:4")


class Timed:
    """Calls at a time, with the start order and the time that all took."""

    def __init__(self, server):
        self.server = server
        self.ended = []
        self.threads = []
        self.start = time.monotonic()

    def send(self, model, milliseconds, pause=0.05):
        def run():
            response = self.server.infer(
                model, {"inputs": [tensor("MS", [milliseconds], datatype="INT32")]}
            )
            assert response.status == 200
            self.ended.append(model)

        thread = threading.Thread(target=run)
        thread.start()
        self.threads.append(thread)
        time.sleep(pause)

    def wait(self):
        for thread in self.threads:
            thread.join(60)
        return time.monotonic() - self.start


def test_models_whose_resources_fit_run_at_the_same_time(limiter):
    timed = Timed(limiter)
    timed.send("narrow", 600)
    timed.send("narrow_too", 600)
    assert timed.wait() < 1.1


def test_models_whose_resources_do_not_fit_run_after_each_other(limiter):
    timed = Timed(limiter)
    timed.send("wide", 500)
    timed.send("narrow", 500)
    assert timed.wait() >= 0.95


def test_without_rate_limit_resources_do_not_matter(launch_once):
    server = launch_once(LIMITED[:2])
    timed = Timed(server)
    timed.send("wide", 700)
    timed.send("narrow", 700)
    assert timed.wait() < 1.2


def test_every_request_is_answered_under_the_rate_limit(limiter):
    timed = Timed(limiter)
    for _ in range(5):
        for model in ("wide", "narrow", "narrow_too"):
            timed.send(model, 10, pause=0)
    timed.wait()
    assert len(timed.ended) == 15


def test_instances_of_lower_priority_get_less_turns(limiter):
    """A priority of n gives one turn for every n of a priority of one."""
    timed = Timed(limiter)
    timed.send("wide", 500, pause=0.2)
    for _ in range(8):
        timed.send("first", 20, pause=0)
        timed.send("last", 20, pause=0)
    timed.wait()
    order = [model for model in timed.ended if model != "wide"]
    assert order[:9].count("first") > order[:9].count("last")


def test_resource_that_is_larger_than_what_there_is_fails_the_load(launch_once):
    with pytest.raises(StartError):
        launch_once([LIMITED[0]], "--rate-limit=execution_count", "--rate-limit-resource=R:2")


def test_resources_that_are_not_given_are_as_many_as_the_largest_model_needs(launch_once):
    server = launch_once(LIMITED[:3], "--rate-limit=execution_count")
    timed = Timed(server)
    timed.send("narrow", 500)
    timed.send("narrow_too", 500)
    assert timed.wait() < 1.0
    timed = Timed(server)
    timed.send("wide", 400)
    timed.send("narrow", 400)
    assert timed.wait() >= 0.75
