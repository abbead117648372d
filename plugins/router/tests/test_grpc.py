"""Clients over gRPC, with servers of core."""

import concurrent.futures
import threading
import time

import grpc
import numpy as np
import pytest
import tritonclient.grpc as triton
from routing.grpc_servers import Calls, request
from routing.requests import PATIENCE_S, ask, inputs, outputs, until

from frontends.grpc.protocol import health_messages, messages


@pytest.fixture
def calls(router):
    found = Calls(router.grpc_port)
    yield found
    found.close()


def values(response):
    return np.frombuffer(response.raw_output_contents[0], np.float32).tolist()


def test_requests_reach_all_servers_with_the_model(calls, router, three):
    answers = [values(calls.infer("who", float(x))) for x in range(60)]

    assert [x for x, _ in answers] == list(range(60))
    assert {number for _, number in answers} == {0, 1, 2}
    assert router.metric("core_router_responses", model="who", status="2xx") == 60
    assert router.metric("core_router_in_flight") == 0


def test_a_request_reaches_the_server_with_its_model(calls):
    assert [values(calls.infer(f"only_{n}", 1.0)) for n in range(3)] == [[1, 0], [1, 1], [1, 2]]


def test_an_unknown_model_is_an_error_of_a_server(calls):
    with pytest.raises(grpc.RpcError) as found:
        calls.infer("unknown", 1.0)

    assert found.value.code() is grpc.StatusCode.NOT_FOUND
    assert "unknown model: 'unknown'" in found.value.details()


def test_tritons_client_finds_all_methods(router, three):
    client = triton.InferenceServerClient(f"127.0.0.1:{router.grpc_port}")

    assert client.is_server_live() and client.is_server_ready()
    assert client.is_model_ready("only_1") and not client.is_model_ready("unknown")
    assert client.get_server_metadata().name
    assert client.get_model_metadata("only_2").inputs[0].name == "x"
    assert client.get_model_config("sums").config.HasField("sequence_batching")
    index = {each.name: each.state for each in client.get_model_repository_index().models}
    assert {"who", "only_0", "only_1", "only_2"} <= set(index) and set(index.values()) == {"READY"}
    assert client.get_system_shared_memory_status().regions == {}
    assert client.get_trace_settings().settings["trace_level"].value
    client.update_log_settings({"log_verbose_level": 1})
    for each in three:
        port = each.address.rpartition(":")[2]
        own = triton.InferenceServerClient(f"127.0.0.1:{port}")
        assert own.get_log_settings().settings["log_verbose_level"].uint32_param == 1
        own.close()
    client.update_log_settings({"log_verbose_level": 0})
    client.close()


def test_the_statistics_are_sums(calls):
    def count():
        asked = messages.ModelStatisticsRequest(name="who")
        found = calls.unary("ModelStatistics", messages.ModelStatisticsResponse)(asked)
        (only,) = found.model_stats
        return only.inference_count

    before = count()
    for _ in range(30):
        calls.infer("who", 1.0)

    assert count() == before + 30


def test_an_operation_that_fails_says_where(calls, three):
    load = calls.unary("RepositoryModelLoad", messages.RepositoryModelLoadResponse)

    with pytest.raises(grpc.RpcError) as found:
        load(messages.RepositoryModelLoadRequest(model_name="unknown"))

    for each in three:
        assert each.name in found.value.details()


def test_the_health_of_the_router(router, route):
    def check(port):
        channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        method = channel.unary_unary(
            "/grpc.health.v1.Health/Check", None, health_messages.HealthCheckResponse.FromString
        )
        found = method(b"").status
        channel.close()
        return found

    assert check(router.grpc_port) == health_messages.HealthCheckResponse.SERVING
    alone = route(["127.0.0.1:9"])
    assert check(alone.grpc_port) == health_messages.HealthCheckResponse.NOT_SERVING


def test_large_messages_pass_in_both_directions(router):
    client = triton.InferenceServerClient(f"127.0.0.1:{router.grpc_port}")
    x = np.arange(3_000_000, dtype=np.float32)
    tensor = triton.InferInput("x", [x.size], "FP32")
    tensor.set_data_from_numpy(x)

    with concurrent.futures.ThreadPoolExecutor(3) as threads:
        found = list(threads.map(lambda _: client.infer("who", [tensor]).as_numpy("y"), range(3)))

    assert all((each[:-1] == x).all() for each in found)
    client.close()
    until(lambda: router.metric("core_router_kept_bytes") == 0)


@pytest.mark.parametrize("compression", ["gzip", "deflate"])
def test_a_compressed_request_reaches_the_server_of_its_model(router, compression):
    client = triton.InferenceServerClient(f"127.0.0.1:{router.grpc_port}")
    tensor = triton.InferInput("x", [1000], "FP32")
    tensor.set_data_from_numpy(np.ones(1000, np.float32))

    for n in range(3):
        found = client.infer(f"only_{n}", [tensor], compression_algorithm=compression)
        assert found.as_numpy("y")[-1] == n
    client.close()


def test_a_sequence_stays_on_its_server(calls, router):
    seen = set()
    for key in [*range(1, 9), "text"]:
        found = [
            values(
                calls.infer(
                    "sums", float(i), sequence_id=key, sequence_start=i == 1, sequence_end=i == 4
                )
            )
            for i in range(1, 5)
        ]
        assert [total for total, _ in found] == [1, 3, 6, 10]
        assert len({server for _, server in found}) == 1
        seen |= {server for _, server in found}
    assert len(seen) > 1
    assert router.metric("core_router_sequences") == 0


def test_a_start_that_a_server_refuses_begins_no_sequence(calls, router):
    wrong = request("sums", 1.0, sequence_id=5, sequence_start=True)
    wrong.inputs[0].name = "unknown"
    with pytest.raises(grpc.RpcError) as caught:
        calls.unary()(wrong, timeout=PATIENCE_S)

    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert router.metric("core_router_sequences") == 0


def test_a_sequence_stays_where_the_model_declares_none(calls, router):
    """Over HTTP and gRPC alike."""
    for key in ("a", "b", 3, 4):
        found = {values(calls.infer("who", 1.0, sequence_id=key))[1] for _ in range(10)}
        found |= {
            outputs(ask(router.port, "/v2/models/who/infer", inputs(1.0, sequence_id=key)))[1]
            for _ in range(10)
        }
        assert len(found) == 1


def test_a_sequence_may_go_on_over_http(calls, router):
    _, server = values(calls.infer("sums", 1.0, sequence_id=99, sequence_start=True))
    over_http = ask(
        router.port, "/v2/models/sums/infer", inputs(2.0, sequence_id=99, sequence_end=True)
    )

    assert outputs(over_http) == [3, server]


def test_a_cancelled_call_is_cancelled_at_the_server(calls, router, three):
    for each in three:
        each.gate.clear()
    call = calls.unary().future(request("gated", 1.0))
    until(lambda: router.metric("core_router_in_flight", model="gated") == 1)

    call.cancel()

    until(lambda: router.metric("core_router_in_flight", model="gated") == 0)
    for each in three:
        each.gate.set()


def test_the_deadline_of_a_call_reaches_the_server(calls, router, three):
    for each in three:
        each.gate.clear()
    try:
        with pytest.raises(grpc.RpcError) as found:
            calls.infer("gated", 1.0, timeout=0.3)
        assert found.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        until(lambda: router.metric("core_router_in_flight", model="gated") == 0)
    finally:
        for each in three:
            each.gate.set()


def test_metadata_pass_in_both_directions(calls):
    _, call = calls.unary().with_call(
        request("who", 1.0), metadata=[("endpoint-load-metrics-format", "json")]
    )

    names = {name for name, _ in call.trailing_metadata()}
    assert "endpoint-load-metrics" in names


def test_a_method_of_another_service_reaches_a_server(router):
    channel = grpc.insecure_channel(f"127.0.0.1:{router.grpc_port}")

    with pytest.raises(grpc.RpcError) as found:
        channel.unary_unary("/other.Service/Method")(b"")

    assert found.value.code() is grpc.StatusCode.UNIMPLEMENTED
    channel.close()


def test_many_calls_at_once(calls, router):
    futures = [calls.unary().future(request("who", float(n))) for n in range(500)]

    assert [values(each.result(PATIENCE_S))[0] for each in futures] == list(range(500))
    assert router.metric("core_router_in_flight") == 0
    assert router.metric("core_router_lost") == 0


def test_calls_in_flight_are_answered_before_the_end(calls, router, three):
    for each in three:
        each.gate.clear()
    future = calls.unary().future(request("gated", 1.0))
    until(lambda: router.metric("core_router_in_flight", model="gated") == 1)

    drained = router.drain()
    time.sleep(0.1)
    for each in three:
        each.gate.set()

    assert values(future.result(PATIENCE_S))[0] == 1
    drained.result(PATIENCE_S)


def test_what_is_not_http2_is_closed(router, raw):
    client = raw(router.grpc_port)
    client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")

    client.file.read()  # settings, and the end
    assert router.metric("core_router_in_flight") == 0


def test_a_client_that_floods_is_cut_off(router, raw):
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
    ping = b"\0\0\x08\6\0\0\0\0\0" + b"12345678"
    client = raw(router.grpc_port)
    client.send(preface)

    def flood():
        try:
            while True:
                client.send(ping * 1000)
        except OSError:
            pass

    sender = threading.Thread(target=flood)
    sender.start()
    try:
        while client.file.read(65536):
            pass
    except OSError:
        pass
    sender.join(PATIENCE_S)
    assert not sender.is_alive()
