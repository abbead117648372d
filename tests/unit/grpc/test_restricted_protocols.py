"""--grpc-restricted-protocol: methods of a restricted kind need the secret."""

import pytest
from unit.grpc.described_server import DescribedServer

from core.errors import CoreError, Kind
from core.options import Options
from frontends.grpc.call import GrpcCall
from frontends.grpc.requests_in_flight import RequestsInFlight
from frontends.grpc.table import methods


@pytest.fixture
async def server():
    return DescribedServer()


class TestRestrictedProtocols:
    """--grpc-restricted-protocol=health,inference:key=secret"""

    SECRET = (("triton-grpc-protocol-key", "secret"),)

    @pytest.fixture
    def table(self, server):
        rule = ("key", "secret")
        server.options = Options.defaults(
            grpc_restricted_protocol={"health": rule, "inference": rule}
        )
        return methods(server, RequestsInFlight())

    @pytest.mark.parametrize(
        "metadata",
        [
            (),
            (("triton-grpc-protocol-key", "wrong"),),
            (("triton-grpc-protocol-key", b"wrong"),),
            (("key", "secret"),),
            (*SECRET, ("triton-grpc-protocol-key", "wrong")),
        ],
    )
    async def test_a_call_without_the_secret_is_refused(self, table, metadata):
        ready = table["/inference.GRPCInferenceService/ServerReady"]

        with pytest.raises(CoreError) as error:
            ready.enter(GrpcCall(metadata))
        assert error.value.kind is Kind.UNAVAILABLE
        assert error.value.message == (
            "This protocol is restricted, expecting header 'triton-grpc-protocol-key'"
        )

    async def test_no_method_of_a_restricted_kind_is_open(self, server):
        every = {row.category for row in methods(server, RequestsInFlight()).values()}
        server.options = Options.defaults(
            grpc_restricted_protocol={category: ("key", "secret") for category in every}
        )
        refused = []

        for path, method in methods(server, RequestsInFlight()).items():
            with pytest.raises(CoreError) as error:
                method.enter(GrpcCall((("triton-grpc-protocol-key", "wrong"),)))
            assert error.value.kind is Kind.UNAVAILABLE
            refused.append(path)

        assert len(refused) == len(methods(server, RequestsInFlight()))

    async def test_a_call_with_the_secret_is_answered(self, table):
        ready = table["/inference.GRPCInferenceService/ServerReady"]

        call = GrpcCall(self.SECRET)
        ready.enter(call)

        assert await ready.function(b"", call) == b"\x08\x01"

    def test_the_health_protocol_is_restricted_with_health(self, table):
        with pytest.raises(CoreError, match="restricted"):
            table["/grpc.health.v1.Health/Check"].enter(GrpcCall())

    async def test_streams_are_restricted_with_inference(self, table):
        stream = table["/inference.GRPCInferenceService/ModelStreamInfer"]

        async def requests():
            return
            yield

        with pytest.raises(CoreError, match="restricted"):
            stream.enter(GrpcCall())
        call = GrpcCall(self.SECRET)
        stream.enter(call)
        assert [each async for each in stream.function(requests(), call)] == []
        assert stream.compress

    async def test_other_categories_stay_open(self, table):
        assert await table["/inference.GRPCInferenceService/ServerMetadata"].function(
            b"", GrpcCall()
        )
