"""ModelInfer, below the transport."""

import asyncio
import gc
import logging
import weakref

import numpy as np
import pytest

from core import dtypes
from core.errors import CoreError, Kind, unavailable
from core.response import InferenceResponse
from core.tensor import Tensor
from frontends.grpc.call import GrpcCall
from frontends.grpc.protocol.messages import ModelInferResponse
from frontends.grpc.services.inbound import Inbound
from frontends.grpc.services.infer import InferService


async def begin(infer, message, call=None):
    task = asyncio.ensure_future(infer(message.SerializeToString(), call or GrpcCall()))
    await asyncio.sleep(0)
    return task


async def test_the_answer_of_the_model_is_the_response(infer, scripted, message, intake):
    task = await begin(infer, message("r"))
    assert intake.in_flight == 1
    scripted.answer("r", 2.0)

    response = ModelInferResponse.FromString(await task)

    assert (response.model_name, response.model_version, response.id) == ("plain", "3", "r")
    assert list(response.raw_output_contents) == [b"\0\0\0\x40"]
    assert not response.parameters
    assert intake.in_flight == 0


async def test_the_error_of_the_model_is_the_status(infer, scripted, message, intake):
    task = await begin(infer, message("r"))
    scripted.replies["r"].fail(unavailable("Request timeout expired"))

    with pytest.raises(CoreError, match="Request timeout expired"):
        await task
    assert intake.in_flight == 0


async def test_a_large_answer_is_whole(infer, scripted, message):
    task = await begin(infer, message("r"))
    large = Tensor.of("y", np.arange(100_000, dtype="<f4"))
    scripted.replies["r"].send(InferenceResponse("plain", 3, [large], id="r"))

    response = ModelInferResponse.FromString(await task)

    assert list(response.raw_output_contents) == [bytes(large.raw)]


async def test_a_decoupled_model_is_refused(infer, message, intake):
    with pytest.raises(CoreError) as error:
        await infer(message(model="many").SerializeToString(), GrpcCall())

    assert error.value.kind is Kind.UNSUPPORTED
    assert error.value.message == (
        "ModelInfer RPC doesn't support models with decoupled transaction policy"
    )
    assert intake.in_flight == 0


async def test_the_version_is_checked_before_the_model(infer, message):
    with pytest.raises(CoreError, match="failed to get model version"):
        await infer(message(model="absent", model_version="x").SerializeToString(), GrpcCall())


async def test_bytes_that_are_no_request_are_invalid(infer):
    with pytest.raises(CoreError) as error:
        await infer(b"\xff\xff\xff", GrpcCall())

    assert error.value.kind is Kind.INVALID


async def test_a_cancelled_call_cancels_its_request(infer, scripted, message):
    call = GrpcCall()
    await begin(infer, message("r"), call)

    call.cancel()

    assert scripted.replies["r"].request.cancelled


async def test_a_cancelled_task_cancels_its_request(infer, scripted, message, intake):
    task = await begin(infer, message("r"))

    task.cancel()
    await asyncio.wait([task])

    assert scripted.replies["r"].request.cancelled
    assert intake.in_flight == 0


async def test_the_deadline_of_the_call_is_that_of_the_request(infer, scripted, message):
    await begin(infer, message("r"), GrpcCall(deadline_ns=123))

    assert scripted.replies["r"].request.deadline_ns == 123


async def test_a_stopping_server_refuses_new_requests(infer, message, intake):
    await intake.drain(0)

    with pytest.raises(CoreError) as error:
        await infer(message().SerializeToString(), GrpcCall())
    assert error.value.kind is Kind.UNAVAILABLE
    assert error.value.message == (
        "GRPC server is shutting down and has stopped accepting new requests."
    )


class TestForwardedHeaders:
    """--grpc-header-forward-pattern"""

    @pytest.fixture
    def infer(self, scripted, intake):
        scripted.options = scripted.options.changed(
            grpc_header_forward_pattern="my_.*|timeout|triton_"
        )
        return InferService(scripted, Inbound(scripted), intake).model_infer

    async def parameters(self, infer, scripted, message, *metadata):
        await begin(infer, message("r"), GrpcCall(metadata))
        return scripted.replies["r"].request.parameters

    async def test_matching_keys_become_parameters(self, infer, scripted, message):
        found = await self.parameters(
            infer, scripted, message, ("my_a", "1"), ("other", "2"), ("has_my_b", "3")
        )

        assert found == {"my_a": "1", "has_my_b": "3"}

    async def test_the_last_of_several_values_counts(self, infer, scripted, message):
        found = await self.parameters(infer, scripted, message, ("my_a", "1"), ("my_a", "2"))

        assert found == {"my_a": "2"}

    async def test_binary_values_come_as_text(self, infer, scripted, message):
        found = await self.parameters(infer, scripted, message, ("my_a-bin", b"\xffa"))

        assert found == {"my_a-bin": "\xffa"}

    @pytest.mark.parametrize("key", ["timeout", "triton_x"])
    async def test_reserved_keys_are_refused(self, infer, message, key):
        with pytest.raises(CoreError) as error:
            await infer(message().SerializeToString(), GrpcCall([(key, "1")]))

        assert error.value.message == (
            f"Header '{key}' is reserved for Triton usage and cannot be forwarded."
        )


class TestWithoutATask:
    """`begin`: what an engine calls that needs no coroutine."""

    @pytest.fixture
    def outcomes(self):
        return []

    @pytest.fixture
    def ask(self, scripted, intake, outcomes):
        """Begin a call; its outcomes are collected."""
        service = InferService(scripted, Inbound(scripted), intake)

        def ask(message, call=None):
            data = message if isinstance(message, bytes) else message.SerializeToString()
            service.begin(data, call or GrpcCall(), outcomes.append)

        return ask

    def test_the_answer_comes_when_the_model_answers(self, ask, scripted, message, outcomes):
        ask(message("r"))
        assert outcomes == []

        scripted.answer("r", 2.0)

        (data,) = outcomes
        assert list(ModelInferResponse.FromString(data).raw_output_contents) == [b"\0\0\0\x40"]

    def test_a_large_tensor_is_not_copied(self, ask, scripted, message, outcomes):
        raw = bytes(100_000)
        ask(message("r"))

        tensor = Tensor("y", dtypes.FP32, (25_000,), raw)
        scripted.replies["r"].send(InferenceResponse("plain", 3, [tensor]))

        (parts,) = outcomes
        assert any(part is raw for part in parts)
        assert ModelInferResponse.FromString(b"".join(parts)).raw_output_contents[0] == raw

    def test_an_answer_that_is_there_already_comes_at_once(
        self, ask, scripted, message, outcomes, monkeypatch
    ):
        accept = scripted.infer

        def infer(request):
            reply = accept(request)
            scripted.answer("r")
            return reply

        monkeypatch.setattr(scripted, "infer", infer)

        ask(message("r"))

        assert len(outcomes) == 1

    def test_a_refusal_comes_at_once(self, ask, message, outcomes, intake):
        ask(message("refused"))
        ask(message(model="absent"))
        ask(message(model="many"))
        ask(b"\xff")

        assert [error.kind for error in outcomes] == [
            Kind.INVALID,
            Kind.NOT_FOUND,
            Kind.UNSUPPORTED,
            Kind.INVALID,
        ]
        assert intake.in_flight == 0

    async def test_a_stopping_server_refuses(self, ask, message, outcomes, intake):
        await intake.drain(0)

        ask(message("r"))

        assert [error.kind for error in outcomes] == [Kind.UNAVAILABLE]
        assert intake.in_flight == 0

    def test_a_cancelled_call_ends_at_once_and_once(self, ask, scripted, message, outcomes, intake):
        call = GrpcCall()
        ask(message("r"), call)

        call.cancel()
        scripted.answer("r")  # too late

        assert [error.kind for error in outcomes] == [Kind.CANCELLED]
        assert scripted.replies["r"].request.cancelled
        assert intake.in_flight == 0

    def test_a_call_that_was_cancelled_before_it_began(
        self, ask, scripted, message, outcomes, intake
    ):
        call = GrpcCall()
        call.cancel()

        ask(message("r"), call)

        assert [error.kind for error in outcomes] == [Kind.CANCELLED]
        assert scripted.replies["r"].request.cancelled
        assert intake.in_flight == 0

    def test_a_cancellation_after_the_response_has_no_effect(
        self, ask, scripted, message, outcomes, intake
    ):
        call = GrpcCall()
        ask(message("r"), call)
        scripted.answer("r")

        call.cancel()

        assert len(outcomes) == 1
        assert not scripted.replies["r"].request.cancelled
        assert intake.in_flight == 0

    def test_an_answer_before_the_end_waits_for_it(self, ask, scripted, message, outcomes):
        ask(message("r"))

        scripted.answer("r", final=False)
        assert outcomes == []
        scripted.replies["r"].send(None)

        assert type(outcomes[0]) is bytes

    @pytest.mark.parametrize("count", [0, 2])
    def test_any_other_number_of_answers_is_an_error(self, ask, scripted, message, outcomes, count):
        ask(message("r"))

        for _ in range(count):
            scripted.answer("r", final=False)
        scripted.replies["r"].send(None)

        (error,) = outcomes
        assert error.kind is Kind.INTERNAL
        assert error.message == f"expected a single response, got {count}"

    def test_an_answer_that_cannot_be_sent_is_an_error(
        self, ask, scripted, message, outcomes, caplog, intake
    ):
        ask(message("r"))
        ask(message("s"))

        with caplog.at_level(logging.ERROR, "core"):
            scripted.answer("r", parameters={"mine": None})
            scripted.replies["s"].send(InferenceResponse("plain", "three", [object()]))

        assert [error.kind for error in outcomes] == [Kind.INTERNAL, Kind.INTERNAL]
        assert outcomes[0].message.startswith("response parameter 'mine' is None")
        assert outcomes[1].message.startswith("ModelInfer failed: AttributeError")
        assert intake.in_flight == 0

    def test_an_unexpected_error_is_internal_and_logged(
        self, ask, scripted, message, outcomes, monkeypatch, caplog, intake
    ):
        monkeypatch.setattr(scripted, "infer", lambda request: 1 // 0)

        with caplog.at_level(logging.ERROR, "core"):
            ask(message("r"))

        assert outcomes[0].message == "ModelInfer failed: ZeroDivisionError; see the log"
        assert "/inference.GRPCInferenceService/ModelInfer failed" in caplog.text
        assert intake.in_flight == 0

    def test_a_finished_request_leaves_no_objects(self, ask, scripted, message):
        """The engine keeps the call until all bytes are sent; inputs must be freed before."""

        class Watched:
            """Something that the request holds."""

        call = GrpcCall()
        ask(message("r"), call)
        held = Watched()
        watched = weakref.ref(held)
        scripted.replies["r"].request.parameters["held"] = held
        del held
        gc.disable()  # it would find what goes round in a circle
        try:
            scripted.answer("r")
            del scripted.replies["r"]

            assert watched() is None
        finally:
            gc.enable()
