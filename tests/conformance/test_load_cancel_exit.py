"""Correctness under load, cancellation and the end of the server."""

import concurrent.futures
import http.client
import signal
import threading
import time

import numpy as np
import pytest
from conformance.catalog import identity
from conformance.protocol import (
    SAMPLES,
    data_of,
    grpc_input,
    grpc_output,
    http_input,
    http_output,
    tensor,
    wait_until,
)
from conformance.streams import Stream


@pytest.fixture(scope="module")
def server(launch):
    return launch(
        [
            "plain",
            "add_sub",
            "cancellable",
            "slow",
            "repeat",
            identity("identity_bytes", "BYTES", extra="dynamic_batching { }"),
        ]
    )


def test_two_thousand_http_requests_from_sixteen_threads_are_all_right(server):
    local = threading.local()

    def run(number):
        if not hasattr(local, "client"):
            local.client = server.http_client()
        sample = np.full(1 + number % 50, number, np.float32)
        binary = bool(number % 2)
        result = local.client.infer(
            "plain",
            [http_input("INPUT0", sample, binary=binary)],
            outputs=[http_output("OUTPUT0", binary_data=binary)],
            request_id=str(number),
        )
        assert result.get_response()["id"] == str(number)
        return np.array_equal(result.as_numpy("OUTPUT0"), sample * 2)

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        assert all(pool.map(run, range(2000)))


def test_two_thousand_grpc_requests_from_sixteen_threads_are_all_right(server):
    client = server.grpc_client()

    def run(number):
        sample = np.full((1 + number % 8, 4), number, np.float32)
        result = client.infer(
            "add_sub",
            [grpc_input("INPUT0", sample), grpc_input("INPUT1", sample)],
            request_id=str(number),
        )
        assert result.get_response().id == str(number)
        return np.array_equal(result.as_numpy("OUTPUT0"), sample * 2)

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        assert all(pool.map(run, range(2000)))


def test_batched_strings_of_many_clients_do_not_mix(server):
    def run(number):
        sample = np.array(
            [[f"{number}-{item}".encode() * (1 + number % 5) for item in range(3)]]
            * (1 + number % 4),
            np.object_,
        )
        result = server.http_client().infer(
            "identity_bytes", [http_input("INPUT0", sample, "BYTES")]
        )
        return np.array_equal(result.as_numpy("OUTPUT0"), sample)

    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        assert all(pool.map(run, range(300)))


def test_statistics_are_exact_after_concurrent_load(server):
    before = server.stats("plain")["inference_stats"]["success"]["count"]
    body = {"inputs": [tensor("INPUT0", [1])]}
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(
            response.status == 200
            for response in pool.map(lambda _: server.infer("plain", body), range(400))
        )
    assert server.stats("plain")["inference_stats"]["success"]["count"] - before == 400


def test_both_protocols_at_a_time(server):
    grpc_client = server.grpc_client()

    def run(number):
        sample = np.array([number], np.float32)
        if number % 2:
            return grpc_client.infer(
                "plain", [grpc_input("INPUT0", sample)], outputs=[grpc_output("OUTPUT0")]
            ).as_numpy("OUTPUT0")[0]
        return data_of(server.infer("plain", {"inputs": [tensor("INPUT0", [number])]}))[0]

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert list(pool.map(run, range(400))) == [2 * number for number in range(400)]


def test_http_aio_client_answers_many_at_a_time(server):
    import asyncio

    import tritonclient.http.aio

    async def run():
        async with tritonclient.http.aio.InferenceServerClient(
            server.http_address, conn_limit=10
        ) as client:
            return await asyncio.gather(
                *[
                    client.infer("plain", [http_input("INPUT0", np.array([number], np.float32))])
                    for number in range(200)
                ]
            )

    assert [result.as_numpy("OUTPUT0")[0] for result in asyncio.run(run())] == [
        2 * number for number in range(200)
    ]


def test_http_client_runs_asynchronous_requests(server):
    client = server.http_client(concurrency=8)
    pending = [
        client.async_infer("plain", [http_input("INPUT0", np.array([number], np.float32))])
        for number in range(100)
    ]
    assert [request.get_result().as_numpy("OUTPUT0")[0] for request in pending] == [
        2 * number for number in range(100)
    ]


def cancelled_so_far(server):
    with Stream(server) as stream:
        stream.send("cancellable", [grpc_input("MS", np.array([-1], np.int32))])
        return int(stream.take(1)[0].as_numpy("CANCELLED")[0])


def test_cancelled_stream_cancels_its_requests_in_the_model(server):
    before = cancelled_so_far(server)
    stream = Stream(server)
    stream.send("cancellable", [grpc_input("MS", np.array([20_000], np.int32))])
    time.sleep(0.5)
    stream.client.stop_stream(cancel_requests=True)
    assert wait_until(lambda: cancelled_so_far(server) == before + 1, timeout=10, pause=0.2)


def test_request_that_is_not_cancelled_ends_by_itself(server):
    with Stream(server) as stream:
        stream.send("cancellable", [grpc_input("MS", np.array([200], np.int32))])
        assert stream.take(1)[0].as_numpy("CANCELLED")[0] == 0


def test_cancelled_unary_call_does_no_harm(server):
    client = server.grpc_client()
    outcome = []
    done = threading.Event()

    def callback(result, error):
        outcome.append(error)
        done.set()

    context = client.async_infer(
        "slow", [grpc_input("MS", np.array([1500], np.int32))], callback=callback
    )
    time.sleep(0.2)
    context.cancel()
    assert done.wait(10)
    assert "ancel" in outcome[0].message()
    assert client.infer("slow", [grpc_input("MS", np.array([1], np.int32))])


def test_terminated_server_exits_with_zero(launch_once):
    server = launch_once(["plain"])
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(30) == 0


def test_interrupted_server_exits_with_zero(launch_once):
    server = launch_once(["plain"])
    server.process.send_signal(signal.SIGINT)
    assert server.process.wait(30) == 0


def test_terminated_server_answers_what_it_has_begun(launch_once):
    server = launch_once(["slow"])
    answers = []
    thread = threading.Thread(
        target=lambda: answers.append(
            server.infer("slow", {"inputs": [tensor("MS", [1500], datatype="INT32")]})
        )
    )
    thread.start()
    time.sleep(0.4)
    server.process.send_signal(signal.SIGTERM)
    thread.join(30)
    assert answers and answers[0].status == 200
    assert server.process.wait(30) == 0


def test_exit_timeout_ends_the_wait(launch_once):
    server = launch_once(["slow"], "--exit-timeout-secs=1")

    def ask():
        with pytest.raises((OSError, http.client.HTTPException)):
            server.infer("slow", {"inputs": [tensor("MS", [30_000], datatype="INT32")]})

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    time.sleep(0.4)
    start = time.monotonic()
    server.process.send_signal(signal.SIGTERM)
    server.process.wait(25)
    assert time.monotonic() - start < 20


def test_no_shared_memory_is_left_after_the_end(launch_once):
    import os

    server = launch_once(["plain", "add_sub"])
    before = set(os.listdir("/dev/shm"))
    assert data_of(server.infer("plain", {"inputs": [tensor("INPUT0", [1])]})) == [2]
    server.process.send_signal(signal.SIGTERM)
    server.process.wait(30)
    # Tests beside this one may have memory of their own for a moment.
    end = time.monotonic() + 30
    while set(os.listdir("/dev/shm")) - before and time.monotonic() < end:
        time.sleep(0.05)
    assert set(os.listdir("/dev/shm")) - before == set()


def test_every_sample_survives_a_round_of_both_protocols(basic):
    for dtype, sample in SAMPLES.items():
        over_http = (
            basic.http_client()
            .infer(f"identity_{dtype.lower()}", [http_input("INPUT0", sample, dtype)])
            .as_numpy("OUTPUT0")
        )
        over_grpc = (
            basic.grpc_client()
            .infer(f"identity_{dtype.lower()}", [grpc_input("INPUT0", sample, dtype)])
            .as_numpy("OUTPUT0")
        )
        assert np.array_equal(over_http, over_grpc)
