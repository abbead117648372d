"""ModelInfer, below the transport."""

import asyncio

import pytest

from core.errors import CoreError, Kind, unavailable
from frontends.grpc.call import Call
from frontends.grpc.protocol.messages import ModelInferResponse
from frontends.grpc.services.inbound import Inbound
from frontends.grpc.services.infer import InferService


async def begin(infer, message, call=None):
    task = asyncio.ensure_future(infer(message.SerializeToString(), call or Call()))
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


async def test_a_decoupled_model_is_refused(infer, message, intake):
    with pytest.raises(CoreError) as error:
        await infer(message(model="many").SerializeToString(), Call())

    assert error.value.kind is Kind.UNSUPPORTED
    assert error.value.message == (
        "ModelInfer RPC doesn't support models with decoupled transaction policy"
    )
    assert intake.in_flight == 0


async def test_the_version_is_looked_at_before_the_model(infer, message):
    with pytest.raises(CoreError, match="failed to get model version"):
        await infer(message(model="absent", model_version="x").SerializeToString(), Call())


async def test_bytes_that_are_no_request_are_invalid(infer):
    with pytest.raises(CoreError) as error:
        await infer(b"\xff\xff\xff", Call())

    assert error.value.kind is Kind.INVALID


async def test_a_cancelled_call_cancels_its_request(infer, scripted, message):
    call = Call()
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
    await begin(infer, message("r"), Call(deadline_ns=123))

    assert scripted.replies["r"].request.deadline_ns == 123


async def test_a_stopping_server_refuses_new_requests(infer, message, intake):
    await intake.drain(0)

    with pytest.raises(CoreError) as error:
        await infer(message().SerializeToString(), Call())
    assert error.value.kind is Kind.UNAVAILABLE
    assert error.value.message == (
        "GRPC server is shutting down and has stopped accepting new requests."
    )


class TestForwardedHeaders:
    """--grpc-header-forward-pattern"""

    @pytest.fixture
    def infer(self, scripted, intake):
        scripted.options.grpc_header_forward_pattern = "my_.*|timeout|triton_"
        return InferService(scripted, Inbound(scripted), intake).model_infer

    async def parameters(self, infer, scripted, message, *metadata):
        await begin(infer, message("r"), Call(metadata))
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
            await infer(message().SerializeToString(), Call([(key, "1")]))

        assert error.value.message == (
            f"Header '{key}' is reserved for Triton usage and cannot be forwarded."
        )
