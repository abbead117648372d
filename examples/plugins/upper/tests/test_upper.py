"""The method on the gRPC port of a server with the plugin."""

import core_upper
import grpc
import pytest

import core
from core import plugins


@pytest.fixture
def upper():
    plugins.hooks().register(core_upper, "upper")
    try:
        with core.Server() as server:
            port = server.serve(grpc_port=0)["grpc"]
            with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
                yield channel.unary_unary("/demo.Text/Upper")
    finally:
        plugins.hooks().unregister(core_upper)


def test_it_answers(upper):
    assert upper("abcä".encode(), timeout=20).decode() == "ABCÄ"


def test_an_error_of_the_plugin_has_its_text(upper):
    with pytest.raises(grpc.RpcError) as error:
        upper(b"\xff", timeout=20)

    assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert error.value.details() == "the request is no text in UTF-8"
