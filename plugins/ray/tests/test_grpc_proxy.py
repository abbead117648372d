"""Calls of Serve's gRPC proxy reach the gRPC port of a server, and their answers come back unchanged."""

import asyncio

import grpc
import grpc.aio
import numpy as np
import pytest
from core_ray.grpc_proxy import (
    SERVICE,
    STREAMING,
    UNARY,
    GrpcForwarder,
    GrpcMethods,
    _has_id,
    add_v2,
)

import core
from frontends.grpc.protocol import messages


class Context:
    """Serve's context of a call, as a replica gets it."""

    def __init__(self, *metadata):
        self._metadata = metadata
        self.code = self.details = None

    def invocation_metadata(self):
        return self._metadata

    def set_code(self, code):
        self.code = code

    def set_details(self, details):
        self.details = details


class Replica(GrpcMethods):
    def __init__(self, target, id):
        async def found():
            return target

        self._grpc = GrpcForwarder(found, lambda: id)


@pytest.fixture(scope="module")
def target():
    """Host and port of a server whose model `double` is a function."""
    with core.Server() as server:
        one = ("FP32", [-1])
        server.bind("double", lambda x: 2 * x, inputs={"x": one}, outputs={"y": one})
        yield f"127.0.0.1:{server.serve(grpc_port=0)['grpc']}"


def called(target, function, id=""):
    """Return what `function` returns for a replica, on a loop of its own.

    id   that Serve has for the call
    """

    async def run():
        replica = Replica(target, id)
        try:
            return await function(replica)
        finally:
            await replica._grpc.close()

    return asyncio.run(run())


def request(**fields):
    made = messages.ModelInferRequest(model_name="double", **fields)
    made.inputs.add(name="x", datatype="FP32", shape=[2])
    made.raw_input_contents.append(np.array([1, 2], np.float32).tobytes())
    return made.SerializeToString()


def test_the_methods_are_those_of_the_protocol():
    package, name = SERVICE.split(".")
    file = messages.ModelInferRequest.DESCRIPTOR.file
    service = file.services_by_name[name]
    streams = {each.name for each in service.methods if each.client_streaming}

    assert file.package == package
    assert {each.name for each in service.methods} == {*UNARY, STREAMING}
    assert streams == {STREAMING}


def test_serve_gets_handlers_that_leave_messages_as_bytes():
    class Server:
        def add_generic_rpc_handlers(self, handlers):
            (self.handler,) = handlers

    class Servicer:
        def __getattr__(self, name):
            return lambda *_: None

    add_v2(Servicer(), server := Server())

    handlers = server.handler._method_handlers  # as Serve reads them
    assert set(handlers) == {f"/{SERVICE}/{name}" for name in (*UNARY, STREAMING)}
    assert {each.request_deserializer for each in handlers.values()} == {None}
    assert handlers[f"/{SERVICE}/{STREAMING}"].request_streaming


def test_a_call_is_answered_by_the_server(target):
    context = Context(("user-agent", "a client"), ("grpc-accept-encoding", "gzip"), ("mine", "1"))

    answer = called(target, lambda replica: replica.ModelInfer(request(id="r"), context))

    found = messages.ModelInferResponse.FromString(answer.SerializeToString())
    assert found.id == "r"
    np.testing.assert_array_equal(np.frombuffer(found.raw_output_contents[0], np.float32), [2, 4])
    assert context.code is None


@pytest.mark.parametrize("id", ["of-serve", "of-serve" * 100])
@pytest.mark.parametrize("own", ["", "mine"])
def test_a_request_without_an_id_gets_that_of_serve(target, id, own):
    answer = called(target, lambda replica: replica.ModelInfer(request(id=own), Context()), id)

    found = messages.ModelInferResponse.FromString(answer.SerializeToString())
    assert found.id == (own or id)
    np.testing.assert_array_equal(np.frombuffer(found.raw_output_contents[0], np.float32), [2, 4])


@pytest.mark.parametrize("name", ["", "m", "m" * 127, "m" * 128, "m" * 20_000])
@pytest.mark.parametrize("version", ["", "1"])
@pytest.mark.parametrize("id", ["", "mine", "i" * 300])
def test_an_id_is_found_behind_name_and_version(name, version, id):
    encoded = messages.ModelInferRequest(
        model_name=name, model_version=version, id=id, raw_input_contents=[b"\x1a" * 64]
    ).SerializeToString()

    assert _has_id(encoded) is bool(id)


@pytest.mark.parametrize("encoded", [b"", b"\n", b"\n\xff", b"\xff" * 40, b"\n" + b"\xff" * 40])
def test_what_is_cut_off_has_no_id(encoded):
    assert not _has_id(encoded)


def test_requests_of_a_stream_and_other_messages_keep_their_bytes(target):
    async def requests():
        yield request()

    async def both(replica):
        wanted = messages.ModelMetadataRequest(name="double").SerializeToString()
        metadata = await replica.ModelMetadata(wanted, Context())
        return metadata, [each async for each in replica.ModelStreamInfer(requests(), Context())]

    metadata, (answer,) = called(target, both, "of-serve")

    assert messages.ModelMetadataResponse.FromString(metadata.SerializeToString()).name == "double"
    found = messages.ModelStreamInferResponse.FromString(answer.SerializeToString())
    assert (found.error_message, found.infer_response.id) == ("", "")


@pytest.mark.parametrize("given, passed", [([], "of-serve"), ([("request_id", "mine")], "mine")])
def test_the_metadata_of_a_call_have_its_id(given, passed):
    async def metadata_of_a_call():
        seen = []

        async def keep(_, context):
            seen.extend(context.invocation_metadata())
            return b""

        handler = grpc.unary_unary_rpc_method_handler(keep)
        server = grpc.aio.server()
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(SERVICE, {"ServerLive": handler}),)
        )
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        replica = Replica(f"127.0.0.1:{port}", "of-serve")
        await replica.ServerLive(b"", Context(*given))
        await replica._grpc.close()
        await server.stop(None)
        return seen

    found = asyncio.run(metadata_of_a_call())

    assert [value for name, value in found if name == "request_id"] == [passed]


def test_a_refusal_sets_the_status_of_the_call(target):
    context = Context()
    wanted = messages.ModelMetadataRequest(name="unknown").SerializeToString()

    answer = called(target, lambda replica: replica.ModelMetadata(wanted, context))

    assert answer.SerializeToString() == b""
    assert context.code in (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.INVALID_ARGUMENT)
    assert "unknown" in context.details


def test_a_stream_is_a_stream(target):
    async def requests():
        for number in range(3):
            yield request(id=str(number))

    async def stream(replica):
        return [each async for each in replica.ModelStreamInfer(requests(), Context())]

    answers = [
        messages.ModelStreamInferResponse.FromString(each.SerializeToString())
        for each in called(target, stream)
    ]

    assert sorted(each.infer_response.id for each in answers) == ["0", "1", "2"]


def test_the_end_of_a_stream_with_an_error_has_its_status():
    context = Context()

    async def stream(replica):
        async def none():
            return
            yield

        return [each async for each in replica.ModelStreamInfer(none(), context)]

    with pytest.raises(RuntimeError, match="ModelStreamInfer"):
        called("127.0.0.1:1", stream)  # no server

    assert context.code is grpc.StatusCode.UNAVAILABLE
