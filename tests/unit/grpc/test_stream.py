"""ModelStreamInfer, below the transport."""

import asyncio

import numpy as np
import pytest

from core import dtypes
from core.errors import CoreError, Kind, internal
from core.response import InferenceResponse
from core.tensor import Tensor
from frontends.grpc.protocol.render import FINAL
from frontends.grpc.services import stream as stream_module
from frontends.shared.v2 import EMPTY_FINAL

STRICT = (("triton_grpc_error", "true"),)


def final(response):
    return response.infer_response.parameters[FINAL].bool_param


async def test_responses_of_ordinary_models_leave_in_the_order_of_their_requests(
    talk, scripted, message
):
    stream = talk()
    await stream.send(message("a"), message("b", "other"), message("c"))

    scripted.answer("c")
    scripted.answer("b")
    await stream.settle()
    assert stream.ids == []

    scripted.answer("a")
    await stream.settle()
    assert stream.ids == ["a", "b", "c"]
    assert all(final(response) for response in stream.responses)


async def test_responses_of_decoupled_models_do_not_wait_for_others(talk, scripted, message):
    stream = talk()
    await stream.send(message("slow"), message("m", "many"), message("n", "many"))

    scripted.answer("n", 1, final=False)
    scripted.answer("m", 2, final=False)
    scripted.answer("n", 3, final=True)
    await stream.settle()

    assert stream.ids == ["n", "m", "n"]
    assert [final(response) for response in stream.responses] == [False, False, True]
    raws = [response.infer_response.raw_output_contents[0] for response in stream.responses]
    assert [np.frombuffer(raw, np.float32)[0] for raw in raws] == [1, 2, 3]


async def test_the_end_without_a_response_is_silent(talk, scripted, message):
    stream = talk()
    await stream.send(message("m", "many"))
    await stream.half_close()

    scripted.replies["m"].send(None, True)
    await stream.task

    assert stream.responses == []


async def test_an_empty_final_response_is_sent_if_requested(talk, scripted, message):
    stream = talk()
    request = message("m", "many", model_version="3")
    request.parameters[EMPTY_FINAL].bool_param = True
    await stream.send(request)

    scripted.answer("m", final=False)
    scripted.replies["m"].send(None, True)
    await stream.settle()

    first, last = stream.responses
    assert (final(first), final(last)) == (False, True)
    answer = last.infer_response
    assert (answer.id, answer.model_name, answer.model_version) == ("m", "many", "3")
    assert not answer.outputs and not last.error_message


async def test_a_refused_request_is_a_response_with_its_id_in_its_turn(talk, scripted, message):
    stream = talk()
    await stream.send(message("a"), message("e", "absent"), message("refused"), message("b"))

    scripted.answer("b")
    scripted.answer("a")
    await stream.settle()

    assert stream.ids == ["a", "e", "refused", "b"]
    unknown, refused = stream.responses[1:3]
    assert unknown.error_message == "Request for unknown model: 'absent' is not found"
    assert refused.error_message == "[request id: refused] the model wants other inputs"
    assert not unknown.infer_response.model_name
    assert not unknown.infer_response.parameters


async def test_a_refused_request_of_a_decoupled_model_does_not_wait(talk, message):
    stream = talk()
    await stream.send(message("a"), message("refused", "many"))

    assert stream.ids == ["refused"]


async def test_an_error_of_the_model_has_the_final_flag(talk, scripted, message):
    stream = talk()
    await stream.send(message("m", "many"))

    scripted.replies["m"].send(internal("error at 0"), False)
    scripted.answer("m")
    await stream.settle()

    error, answer = stream.responses
    assert error.error_message == "error at 0"
    assert error.infer_response.model_name == "many"
    assert (final(error), final(answer)) == (False, True)


async def test_a_stream_ends_after_the_last_response_when_the_client_is_done(
    talk, scripted, message
):
    stream = talk()
    await stream.send(message("a"))
    await stream.half_close()
    assert not stream.task.done()

    scripted.answer("a")
    await stream.task

    assert stream.ids == ["a"]


async def test_a_stream_without_requests_ends_at_once(talk):
    stream = talk()

    await stream.half_close()

    assert await stream.task is None


async def test_requests_of_a_stream_that_is_cut_off_are_cancelled(talk, scripted, message, intake):
    stream = talk()
    await stream.send(message("a"), message("m", "many"))
    assert intake.in_flight == 2

    stream.task.cancel()
    await stream.settle()

    assert all(reply.request.cancelled for reply in scripted.replies.values())
    assert intake.in_flight == 0
    scripted.answer("a")  # the model answers nevertheless: no error
    assert intake.in_flight == 0


async def test_a_cancelled_call_ends_its_stream(talk, scripted, message):
    stream = talk()
    await stream.send(message("a"))

    stream.call.cancel()

    with pytest.raises(CoreError) as error:
        await stream.task
    assert error.value.kind is Kind.CANCELLED
    assert scripted.replies["a"].request.cancelled


async def test_the_first_error_ends_a_stream_with_statuses(talk, scripted, message):
    stream = talk(STRICT)
    await stream.send(message("a"), message("m", "many"), message("other"))

    scripted.answer("a")
    scripted.replies["m"].send(internal("broken"), False)

    with pytest.raises(CoreError, match="broken") as error:
        await stream.task
    assert error.value.kind is Kind.INTERNAL
    assert stream.ids == ["a"]
    assert scripted.replies["other"].request.cancelled


async def test_a_refusal_ends_a_stream_with_statuses(talk, message):
    stream = talk(STRICT)
    await stream.send(message("e", "absent"))

    with pytest.raises(CoreError) as error:
        await stream.task
    assert error.value.kind is Kind.NOT_FOUND


async def test_bytes_that_are_no_request_end_the_stream(talk, scripted, message):
    stream = talk()
    await stream.send(message("a"))
    stream.requests.put_nowait(b"\xff\xff")

    with pytest.raises(CoreError) as error:
        await stream.task
    assert error.value.kind is Kind.INVALID
    assert scripted.replies["a"].request.cancelled


async def test_a_failing_transport_ends_the_stream_and_is_logged(talk, message, caplog):
    stream = talk()
    stream.requests.put_nowait(object())  # what no transport gives

    with pytest.raises(CoreError) as error:
        await stream.task
    assert error.value.kind is Kind.INTERNAL
    assert "a gRPC stream ends" in caplog.text


async def test_a_response_that_cannot_be_sent_is_an_error_of_its_request(
    talk, scripted, message, caplog
):
    stream = talk()
    await stream.send(message("a"), message("b"))

    broken = Tensor("y", dtypes.BYTES, (1,), array=np.array([b""]))
    broken.name = "\ud800"  # half of a surrogate pair: protobuf refuses it
    scripted.replies["a"].send(InferenceResponse("plain", 3, [broken], id="a"), True)
    scripted.answer("b")
    await stream.settle()

    assert "cannot be sent" in stream.responses[0].error_message
    assert stream.ids == ["a", "b"]
    assert "cannot be sent" in caplog.text


async def test_a_stopping_server_refuses_new_requests_and_then_ends_the_stream(
    talk, scripted, message, intake
):
    stream = talk()
    await stream.send(message("a"))

    drained = asyncio.ensure_future(intake.drain(30))
    await stream.send(message("late"))
    scripted.answer("a")
    await drained

    with pytest.raises(CoreError) as error:
        await stream.task
    text = "GRPC server is shutting down and has stopped accepting new requests."
    assert (error.value.kind, error.value.message) == (Kind.UNAVAILABLE, text)
    assert stream.ids == ["a", "late"]
    assert stream.responses[1].error_message == text


async def test_a_client_that_does_not_read_is_not_read(scripted, intake, message, monkeypatch):
    monkeypatch.setattr(stream_module, "MOST_UNSENT_BYTES", 100)
    sent = []

    async def requests():
        for number in range(50):
            sent.append(number)
            yield message(f"refused {number}", "absent").SerializeToString()
            await asyncio.sleep(0)

    service = stream_module.StreamService(scripted, stream_module.Inbound(scripted), intake)
    responses = service.model_stream_infer(requests(), stream_module.GrpcCall())
    await anext(responses)
    for _ in range(100):
        await asyncio.sleep(0)
    assert len(sent) < 10

    rest = [each async for each in responses]

    assert (len(sent), len(rest)) == (50, 49)
