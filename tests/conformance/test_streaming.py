"""gRPC streaming and decoupled models."""

import time

import numpy as np
import pytest
import tritonclient.grpc
from conformance.protocol import grpc_input, grpc_output, refused, tensor, texts
from conformance.streams import Stream
from tritonclient.utils import InferenceServerException


@pytest.fixture(scope="module")
def server(launch):
    return launch(["repeat", "plain", "slow", "auto_decoupled", "faulty"])


@pytest.fixture
def stream(server):
    with Stream(server) as opened:
        yield opened


def repeat(values, mode=None, wait=None):
    inputs = [grpc_input("IN", np.array(values, np.int32))]
    if mode is not None:
        inputs.append(grpc_input("MODE", texts(mode), "BYTES"))
    if wait is not None:
        inputs.append(grpc_input("WAIT_MS", np.array([wait], np.int32)))
    return inputs


def is_final(result):
    return result.get_response().parameters["triton_final_response"].bool_param


@pytest.mark.parametrize("mode", [None, "flag_on_last", "thread"])
def test_decoupled_model_answers_once_for_each_response(stream, mode):
    stream.send("repeat", repeat([4, 5, 6], mode))
    found = stream.take(3)
    assert [result.as_numpy("OUT")[0] for result in found] == [4, 5, 6]
    assert [result.as_numpy("INDEX")[0] for result in found] == [0, 1, 2]
    assert stream.quiet()


def test_decoupled_model_may_answer_nothing(stream):
    stream.send("repeat", repeat([]))
    assert stream.quiet()


def test_empty_final_response_comes_when_it_is_asked_for(stream):
    stream.send("repeat", repeat([4, 5]), enable_empty_final_response=True)
    found = stream.take(3)
    assert [is_final(result) for result in found] == [False, False, True]
    assert len(found[2].get_response().outputs) == 0


def test_no_response_at_all_is_one_empty_final_response(stream):
    stream.send("repeat", repeat([]), enable_empty_final_response=True)
    (found,) = stream.take(1)
    assert is_final(found) and len(found.get_response().outputs) == 0


def test_final_flag_on_the_last_response_needs_no_empty_one(stream):
    stream.send("repeat", repeat([4, 5], "flag_on_last"), enable_empty_final_response=True)
    assert [is_final(result) for result in stream.take(2)] == [False, True]
    assert stream.quiet()


def test_request_id_is_on_every_response(stream):
    stream.send("repeat", repeat([1, 2, 3]), request_id="mine")
    assert {result.get_response().id for result in stream.take(3)} == {"mine"}


def test_responses_come_as_soon_as_they_are_sent(stream):
    start = time.monotonic()
    stream.send("repeat", repeat([1, 2, 3, 4], wait=300))
    stream.take(1)
    first = time.monotonic() - start
    stream.take(3)
    assert first < 0.9 < time.monotonic() - start


def test_error_response_does_not_end_the_others(stream):
    stream.send("repeat", repeat([1, 2, 3], "error_at:1"))
    answers = [stream.next() for _ in range(3)]
    assert [error is None for _, error in answers] == [True, False, True]
    assert "error at 1" in answers[1][1].message()


def test_exception_before_any_response_is_an_error(stream):
    stream.send("repeat", repeat([1], "raise"))
    _, error = stream.next()
    assert "raised before any response" in error.message()
    stream.send("repeat", repeat([8]))
    assert stream.take(1)[0].as_numpy("OUT")[0] == 8


def test_named_outputs_only(stream):
    stream.send("repeat", repeat([1]), outputs=[grpc_output("INDEX")])
    (found,) = stream.take(1)
    assert [entry.name for entry in found.get_response().outputs] == ["INDEX"]


def test_ordinary_model_answers_once_on_a_stream(stream):
    stream.send("plain", [grpc_input("INPUT0", np.array([3], np.float32))])
    assert stream.take(1)[0].as_numpy("OUTPUT0")[0] == 6
    assert stream.quiet()


def test_ordinary_answer_is_final(stream):
    stream.send(
        "plain", [grpc_input("INPUT0", np.array([3], np.float32))], enable_empty_final_response=True
    )
    assert is_final(stream.take(1)[0])
    assert stream.quiet()


def test_error_of_a_request_leaves_the_stream_open(stream):
    stream.send("absent", repeat([1]))
    _, error = stream.next()
    assert "absent" in error.message()
    stream.send("plain", [grpc_input("INPUT0", np.array([3], np.float32))])
    stream.take(1)


def test_invalid_input_leaves_the_stream_open(stream):
    stream.send("plain", [grpc_input("WRONG", np.array([3], np.float32))])
    assert stream.next()[1] is not None
    stream.send("plain", [grpc_input("INPUT0", np.array([3], np.float32))])
    stream.take(1)


def test_many_requests_on_one_stream_all_answer(stream):
    for number in range(60):
        stream.send(
            "plain", [grpc_input("INPUT0", np.array([number], np.float32))], request_id=str(number)
        )
    found = {result.get_response().id: result.as_numpy("OUTPUT0")[0] for result in stream.take(60)}
    assert found == {str(number): 2 * number for number in range(60)}


def test_models_may_be_mixed_on_one_stream(stream):
    stream.send("repeat", repeat([1, 2], wait=50), request_id="repeat")
    stream.send("plain", [grpc_input("INPUT0", np.array([5], np.float32))], request_id="plain")
    found = [result.get_response().id for result in stream.take(3)]
    assert sorted(found) == ["plain", "repeat", "repeat"]


def test_responses_of_one_request_stay_in_order(stream):
    stream.send("repeat", repeat(list(range(200)), "thread"))
    assert [result.as_numpy("OUT")[0] for result in stream.take(200)] == list(range(200))


def test_closing_a_stream_waits_for_its_answers(server):
    with Stream(server) as stream:
        stream.send("slow", [grpc_input("MS", np.array([300], np.int32))])
    assert stream.next(1)[1] is None


def test_decoupled_model_is_refused_over_http(server):
    text = refused(server.infer("repeat", {"inputs": [tensor("IN", [1], datatype="INT32")]}))
    assert "decoupled" in text


def test_decoupled_model_is_refused_by_the_unary_call(server):
    with pytest.raises(InferenceServerException) as error:
        server.grpc_client().infer("repeat", repeat([1]))
    assert error.value.status() == "StatusCode.UNIMPLEMENTED"


def test_model_that_completed_itself_as_decoupled_streams(stream):
    stream.send("auto_decoupled", [grpc_input("IN", np.array([3], np.int32))])
    assert [result.as_numpy("OUT")[0] for result in stream.take(3)] == [0, 1, 2]


def test_two_streams_do_not_mix(server):
    with Stream(server) as first, Stream(server) as second:
        first.send("repeat", repeat([1, 2, 3], "thread", wait=20))
        second.send("repeat", repeat([7, 8], "thread", wait=20))
        assert [result.as_numpy("OUT")[0] for result in first.take(3)] == [1, 2, 3]
        assert [result.as_numpy("OUT")[0] for result in second.take(2)] == [7, 8]


def test_aio_client_streams(server):
    import asyncio

    import tritonclient.grpc.aio

    async def run():
        async with tritonclient.grpc.aio.InferenceServerClient(server.grpc_address) as client:

            async def requests():
                yield {"model_name": "repeat", "inputs": repeat([3, 2, 1])}

            found = []
            async for result, error in client.stream_infer(requests()):
                assert error is None
                found.append(int(result.as_numpy("OUT")[0]))
            return found

    assert asyncio.run(run()) == [3, 2, 1]


def test_statistics_count_a_decoupled_request_once(server):
    before = server.stats("repeat")
    with Stream(server) as stream:
        stream.send("repeat", repeat([1, 2, 3]))
        stream.take(3)
    after = server.stats("repeat")
    assert after["inference_count"] - before["inference_count"] == 1
    assert after["execution_count"] - before["execution_count"] == 1


def test_error_on_the_client_that_uses_no_stream(server):
    client = tritonclient.grpc.InferenceServerClient(server.grpc_address)
    with pytest.raises(InferenceServerException):
        client.async_stream_infer("plain", [])
