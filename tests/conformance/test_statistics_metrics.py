"""Statistics and metrics: exact counts, names and labels."""

import numpy as np
import pytest
from conformance.model import Model
from conformance.protocol import grpc_input, http_input, refused, tensor, texts, wait_until
from tritonclient.utils import InferenceServerException


@pytest.fixture(scope="module")
def server(launch):
    return launch(
        [
            "plain",
            "add_sub",
            "faulty",
            "versioned_all",
            "custom_metrics",
            "slow",
            Model(
                "impatient",
                "slow",
                config="""
backend: "python"
max_batch_size: 1
input [ { name: "MS" data_type: TYPE_INT32 dims: [ 1 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_INT32 dims: [ 1 ] } ]
dynamic_batching { default_queue_policy {
  timeout_action: REJECT default_timeout_microseconds: 100000 } }
""",
            ),
        ]
    )


def count(server, model, name, version="1"):
    return server.stats(model, version)["inference_stats"][name]["count"]


def plain(server, value=1):
    assert server.infer("plain", {"inputs": [tensor("INPUT0", [value])]}).status == 200


def fail(server):
    server.infer("faulty", {"inputs": [tensor("MODE", ["raise"], datatype="BYTES")]})


def rows(server, number):
    data = [1] * 4 * number
    assert (
        server.infer(
            "add_sub",
            {"inputs": [tensor("INPUT0", data, [number, 4]), tensor("INPUT1", data, [number, 4])]},
        ).status
        == 200
    )


def test_statistics_have_their_members(server):
    found = server.stats("plain")
    assert {
        "name",
        "version",
        "last_inference",
        "inference_count",
        "execution_count",
        "inference_stats",
        "batch_stats",
    } <= set(found)
    assert set(found["inference_stats"]) == {
        "success",
        "fail",
        "queue",
        "compute_input",
        "compute_infer",
        "compute_output",
        "cache_hit",
        "cache_miss",
    }
    for entry in found["inference_stats"].values():
        assert set(entry) == {"count", "ns"}


def test_unused_model_has_zero_everywhere(server):
    found = server.stats("versioned_all", "1")
    assert found["inference_count"] == found["execution_count"] == found["last_inference"] == 0
    assert all(entry == {"count": 0, "ns": 0} for entry in found["inference_stats"].values())
    assert found["batch_stats"] == []


def test_each_request_counts_once(server):
    before = server.stats("plain")
    for _ in range(5):
        plain(server)
    after = server.stats("plain")
    assert after["inference_count"] - before["inference_count"] == 5
    assert after["execution_count"] - before["execution_count"] == 5
    for name in ("success", "queue", "compute_input", "compute_infer", "compute_output"):
        assert (
            after["inference_stats"][name]["count"] - before["inference_stats"][name]["count"] == 5
        )
    assert after["last_inference"] >= before["last_inference"] > 0 or before["last_inference"] == 0


def test_inference_count_is_of_rows_and_success_of_requests(server):
    before = server.stats("add_sub")
    rows(server, 3)
    rows(server, 2)
    after = server.stats("add_sub")
    assert after["inference_count"] - before["inference_count"] == 5
    assert after["execution_count"] - before["execution_count"] == 2
    assert count(server, "add_sub", "success") - before["inference_stats"]["success"]["count"] == 2


def test_batch_statistics_are_of_each_batch_size(server):
    rows(server, 7)
    sizes = {entry["batch_size"]: entry for entry in server.stats("add_sub")["batch_stats"]}
    assert sizes[7]["compute_infer"]["count"] >= 1
    assert set(sizes[7]) == {"batch_size", "compute_input", "compute_infer", "compute_output"}


def test_exception_of_a_model_counts_as_a_failure(server):
    before = server.stats("faulty")["inference_stats"]
    fail(server)
    after = server.stats("faulty")["inference_stats"]
    assert after["fail"]["count"] - before["fail"]["count"] == 1
    assert after["success"]["count"] == before["success"]["count"]


def test_exception_counts_as_an_execution_without_inference(server):
    before = server.stats("faulty")
    fail(server)
    after = server.stats("faulty")
    assert after["inference_count"] == before["inference_count"]
    assert after["execution_count"] - before["execution_count"] == 1


def test_invalid_request_does_not_count(server):
    before = server.stats("plain")["inference_stats"]
    refused(server.infer("plain", {"inputs": []}))
    refused(server.infer("plain", {"inputs": [tensor("INPUT0", [1], datatype="INT32")]}))
    after = server.stats("plain")["inference_stats"]
    assert after["success"]["count"] == before["success"]["count"]
    assert after["fail"]["count"] == before["fail"]["count"]


def test_times_are_of_the_right_size(server):
    before = server.stats("slow")["inference_stats"]["compute_infer"]["ns"]
    server.infer("slow", {"inputs": [tensor("MS", [200], datatype="INT32")]})
    spent = server.stats("slow")["inference_stats"]["compute_infer"]["ns"] - before
    assert 0.19e9 < spent < 1.5e9


def test_success_time_covers_its_parts(server):
    server.infer("slow", {"inputs": [tensor("MS", [50], datatype="INT32")]})
    found = server.stats("slow")["inference_stats"]
    parts = sum(
        found[name]["ns"] for name in ("queue", "compute_input", "compute_infer", "compute_output")
    )
    assert found["success"]["ns"] >= parts * 0.95


def test_versions_have_their_own_statistics(server):
    before = server.stats("versioned_all", "2")["inference_count"]
    server.infer(
        "versioned_all", {"inputs": [tensor("INPUT0", [0], datatype="INT32")]}, version="2"
    )
    assert server.stats("versioned_all", "2")["inference_count"] - before == 1
    assert server.stats("versioned_all", "1")["inference_count"] == 0


def test_statistics_of_a_model_list_its_versions(server):
    found = server.get("/v2/models/versioned_all/stats").json["model_stats"]
    assert sorted(entry["version"] for entry in found) == ["1", "2", "3"]


def test_statistics_of_all_models(server):
    names = {entry["name"] for entry in server.get("/v2/models/stats").json["model_stats"]}
    assert {"plain", "add_sub", "faulty", "versioned_all"} <= names


@pytest.mark.parametrize("path", ["/v2/models/absent/stats", "/v2/models/plain/versions/9/stats"])
def test_statistics_of_what_is_unknown_are_refused(server, path):
    refused(server.get(path), 400, 404)


def test_grpc_statistics_match_http(server):
    plain(server)
    over_http = server.stats("plain")
    over_grpc = server.grpc_client().get_inference_statistics("plain").model_stats[0]
    assert over_grpc.inference_count == over_http["inference_count"]
    assert over_grpc.execution_count == over_http["execution_count"]
    assert over_grpc.inference_stats.success.ns == over_http["inference_stats"]["success"]["ns"]
    assert [entry.batch_size for entry in over_grpc.batch_stats] == [
        entry["batch_size"] for entry in over_http["batch_stats"]
    ]


COUNTERS = [
    "nv_inference_request_success",
    "nv_inference_count",
    "nv_inference_exec_count",
    "nv_inference_request_duration_us",
    "nv_inference_queue_duration_us",
    "nv_inference_compute_input_duration_us",
    "nv_inference_compute_infer_duration_us",
    "nv_inference_compute_output_duration_us",
]


@pytest.mark.parametrize("name", COUNTERS)
def test_counter_is_there_for_every_model_with_model_and_version(server, name):
    found = [
        dict(labels) for sample, labels in server.metrics() if sample in (name, name + "_total")
    ]
    assert {"model": "plain", "version": "1"} in found
    assert {"model": "versioned_all", "version": "3"} in found
    assert f"# TYPE {name} counter" in server.metrics_text()
    assert f"# HELP {name} " in server.metrics_text()


def test_pending_requests_are_a_gauge(server):
    assert "# TYPE nv_inference_pending_request_count gauge" in server.metrics_text()
    assert server.metric("nv_inference_pending_request_count", model="plain", version="1") == 0


def test_pending_requests_are_those_that_wait(server):
    import threading

    threads = [
        threading.Thread(
            target=server.infer, args=("slow", {"inputs": [tensor("MS", [400], datatype="INT32")]})
        )
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    try:
        assert wait_until(
            lambda: server.metric("nv_inference_pending_request_count", model="slow") == 2,
            timeout=1,
        )
    finally:
        for thread in threads:
            thread.join()


@pytest.mark.parametrize("reason", ["OTHER", "BACKEND", "CANCELED", "REJECTED"])
def test_failures_have_a_reason(server, reason):
    assert (
        server.metric("nv_inference_request_failure", model="plain", version="1", reason=reason)
        == 0
    )


def test_counters_grow_by_what_happened(server):
    def values():
        return {name: server.metric(name, model="add_sub", version="1") for name in COUNTERS}

    before = values()
    rows(server, 3)
    after = values()
    assert after["nv_inference_request_success"] - before["nv_inference_request_success"] == 1
    assert after["nv_inference_count"] - before["nv_inference_count"] == 3
    assert after["nv_inference_exec_count"] - before["nv_inference_exec_count"] == 1
    assert after["nv_inference_request_duration_us"] > before["nv_inference_request_duration_us"]


def test_exception_of_a_model_is_a_failure_of_the_backend(server):
    def value():
        return server.metric("nv_inference_request_failure", model="faulty", reason="BACKEND")

    before = value()
    fail(server)
    assert value() - before == 1


def test_request_that_waits_too_long_is_a_rejected_failure(server):
    import threading
    import time

    def value():
        return server.metric("nv_inference_request_failure", model="impatient", reason="REJECTED")

    def send(milliseconds):
        return server.infer(
            "impatient", {"inputs": [tensor("MS", [milliseconds], [1, 1], "INT32")]}
        ).status

    before = value()
    thread = threading.Thread(target=send, args=(600,))
    thread.start()
    time.sleep(0.2)
    assert send(0) == 503
    thread.join()
    assert value() - before == 1


def test_duration_metric_is_in_microseconds(server):
    def value():
        return server.metric("nv_inference_compute_infer_duration_us", model="slow")

    before = value()
    server.infer("slow", {"inputs": [tensor("MS", [100], datatype="INT32")]})
    assert 95_000 < value() - before < 1_000_000


def test_metrics_are_text_of_prometheus(server):
    response = server.get("/metrics", port=server.metrics_port)
    assert response.status == 200
    assert response.headers["Content-Type"].startswith("text/plain")
    assert response.body.endswith(b"\n")


def test_metrics_are_on_their_own_port(server):
    assert server.get("/metrics").status == 404
    assert b"nv_" not in server.get("/v2", port=server.metrics_port).body


def test_model_can_keep_metrics_of_its_own(server):
    result = server.http_client().infer(
        "custom_metrics", [http_input("BY", np.array([2.5], np.float32))]
    )
    first = server.metric("conformance_items", model="custom_metrics", kind="a")
    assert result.as_numpy("VALUES").tolist() == [first, 24.0]
    assert server.metric("conformance_level", model="custom_metrics") == 24
    server.http_client().infer("custom_metrics", [http_input("BY", np.array([1], np.float32))])
    assert server.metric("conformance_items", model="custom_metrics", kind="a") == first + 1
    text = server.metrics_text()
    assert "# HELP conformance_items Items that were counted" in text
    assert "# TYPE conformance_level gauge" in text


def test_counter_of_a_model_cannot_fall(server, launcher):
    if launcher.kind == "triton":
        pytest.skip("ends the original server")
    text = refused(server.infer("custom_metrics", {"inputs": [tensor("BY", [-1])]}), 500)
    assert text.startswith("counter")


def test_grpc_requests_count_like_http_ones(server):
    before = server.metric("nv_inference_request_success", model="plain")
    server.grpc_client().infer("plain", [grpc_input("INPUT0", np.array([1], np.float32))])
    plain(server)
    assert server.metric("nv_inference_request_success", model="plain") - before == 2


def test_failure_over_grpc_counts(server):
    before = count(server, "faulty", "fail")
    with pytest.raises(InferenceServerException):
        server.grpc_client().infer("faulty", [grpc_input("MODE", texts("raise"), "BYTES")])
    assert count(server, "faulty", "fail") - before == 1


def test_metrics_go_with_their_model(launch_once):
    server = launch_once(["plain"], "--model-control-mode=explicit", "--load-model=plain")
    plain(server)
    assert server.metric("nv_inference_count", model="plain") == 1
    server.post("/v2/repository/models/plain/unload")
    assert wait_until(lambda: server.metric("nv_inference_count", model="plain") is None)
