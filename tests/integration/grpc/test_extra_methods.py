"""Methods that plugins add to the gRPC port, with both engines."""

import asyncio

import grpc
import pytest

from core.errors import CoreError, invalid
from frontends.grpc.extra_methods import GrpcMethods, unary
from frontends.grpc.method import StreamMethod, UnaryMethod
from frontends.grpc.protocol.health_messages import HealthCheckRequest, HealthCheckResponse
from frontends.shared.access.tokens import line_of

UPPER, COUNT = "/demo.Text/Upper", "/demo.Text/Count"


async def upper(data, call):
    if not data:
        raise invalid("there is no text")
    return data.upper()


class Counting:
    """A stream that counts to the number of its request, or endlessly without one."""

    def __init__(self):
        self.closed = False

    async def __call__(self, requests, call):
        most = int(await anext(requests) or 10**9)
        try:
            for number in range(most):
                yield str(number).encode()
                if number:
                    await asyncio.sleep(0.001 if most < 10**9 else 3600)
        finally:
            self.closed = True


@pytest.fixture
def counting():
    return Counting()


@pytest.fixture
def port(serve, counting):
    return serve(
        methods=[
            UnaryMethod(UPPER, "metadata", upper, changes=False),
            StreamMethod(COUNT, "metadata", counting, changes=False),
        ]
    )


@pytest.fixture
def channel(port):
    with grpc.insecure_channel(port.address) as found:
        yield found


def test_a_method_answers_beside_those_of_the_port(channel):
    assert channel.unary_unary(UPPER)(b"abc", timeout=20) == b"ABC"


def test_its_error_has_the_status_of_its_kind(channel):
    with pytest.raises(grpc.RpcError) as error:
        channel.unary_unary(UPPER)(b"", timeout=20)

    assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert error.value.details() == "there is no text"


def test_a_stream_sends_its_responses(channel):
    assert list(channel.unary_stream(COUNT)(b"3", timeout=20)) == [b"0", b"1", b"2"]


def test_a_client_that_cancels_closes_the_stream(channel, counting, until):
    call = channel.unary_stream(COUNT)(b"", timeout=20)
    assert [next(call), next(call)] == [b"0", b"1"]

    call.cancel()

    until(lambda: counting.closed)


def test_the_stop_of_the_server_ends_a_stream_that_waits(port, channel, counting):
    call = channel.unary_stream(COUNT)(b"", timeout=20)
    assert [next(call), next(call)] == [b"0", b"1"]

    port.begin_stop().result(10)

    with pytest.raises(grpc.RpcError) as error:
        next(call)
    assert error.value.code() is grpc.StatusCode.UNAVAILABLE
    assert counting.closed


def test_a_caller_needs_the_role_of_the_category(serve, tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text(line_of("ann", ["infer"], "secret"))
    method = UnaryMethod(UPPER, "statistics", upper, changes=False)
    served = serve(auth_tokens=str(tokens), methods=[method])

    with (
        grpc.insecure_channel(served.address) as channel,
        pytest.raises(grpc.RpcError) as error,
    ):
        bearer = (("authorization", "Bearer secret"),)
        channel.unary_unary(UPPER)(b"abc", metadata=bearer, timeout=20)

    assert error.value.code() is grpc.StatusCode.PERMISSION_DENIED


def test_the_methods_of_the_port_take_precedence(serve):
    served = serve(methods=[UnaryMethod("/grpc.health.v1.Health/Check", "health", upper)])

    with grpc.insecure_channel(served.address) as channel:
        data = channel.unary_unary("/grpc.health.v1.Health/Check")(b"", timeout=20)

    assert HealthCheckResponse.FromString(data).status == HealthCheckResponse.SERVING


def test_a_method_that_comes_too_late_is_refused(port):
    with pytest.raises(CoreError, match="add them in core_server_starting"):
        GrpcMethods.of(port.server).add([])


async def test_a_message_that_cannot_be_decoded_is_refused_before_the_service():
    async def service(request):
        raise AssertionError("not reached")

    with pytest.raises(CoreError, match=r"is no grpc\.health\.v1\.HealthCheckRequest"):
        await unary(HealthCheckRequest, service)(b"\xff", None)
