"""One port for all workers, and for nobody else."""

import contextlib
import socket

import pytest
from core_workers.ports import Ports

from core import plugins
from core.errors import CoreError, Kind
from core.system.platform import PORTABLE


def options(**changes):
    found = {"http_port": 0, "grpc_port": 0, "metrics_port": 0, **changes}
    addresses = {"http_address": "127.0.0.1", "grpc_address": "127.0.0.1"}
    return plugins.flags().options({**addresses, **found})


@pytest.fixture
def ports():
    with contextlib.closing(Ports(options())) as found:
        yield found


def listener(port, shared):
    found = socket.socket()
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        found.bind(("127.0.0.1", port))
        found.listen()
    except OSError:
        found.close()
        raise
    return found


def test_every_frontend_has_one(ports):
    assert set(ports.chosen) == {"http_port", "grpc_port", "metrics_port"}
    assert len(set(ports.chosen.values())) == 3
    assert all(ports.chosen.values())


def test_ports_of_platforms_are_kept_too():
    several = options(
        allow_sagemaker=True, sagemaker_port=0, allow_vertex_ai=True, vertex_ai_port=0
    )
    with contextlib.closing(Ports(several)) as found:
        assert {"sagemaker_port", "vertex_ai_port"} < set(found.chosen)
        taken = options(allow_sagemaker=True, sagemaker_port=found.chosen["vertex_ai_port"])
        with pytest.raises(CoreError, match=r"Socket '0\.0\.0\.0:\d+' already in use"):
            Ports(taken)


def test_a_frontend_that_is_off_has_none():
    with contextlib.closing(Ports(options(allow_http=False))) as found:
        assert "http_port" not in found.chosen


@pytest.mark.skipif(PORTABLE, reason="elsewhere the supervisor opens the port")
def test_several_workers_can_listen(ports):
    port = ports.chosen["http_port"]

    with listener(port, shared=True), listener(port, shared=True):
        pass


def test_nobody_else_can_take_it_while_no_worker_listens(ports):
    with pytest.raises(OSError):
        listener(ports.chosen["http_port"], shared=False)


def test_another_server_with_workers_is_found_at_the_start(ports):
    with pytest.raises(CoreError) as caught:
        Ports(options(http_port=ports.chosen["http_port"]))

    assert caught.value.kind is Kind.UNAVAILABLE
    assert "already in use" in caught.value.message


def test_a_port_can_be_shared_with_another_server_that_wants_it():
    with (
        contextlib.closing(Ports(options(reuse_http_port=True))) as first,
        contextlib.closing(
            Ports(options(http_port=first.chosen["http_port"], reuse_http_port=True))
        ) as second,
    ):
        assert second.chosen["http_port"] == first.chosen["http_port"]


def test_an_address_that_is_not_here_is_named():
    with pytest.raises(CoreError, match=r"cannot listen at '192\.0\.2\.1:0'"):
        Ports(options(http_address="192.0.2.1", allow_metrics=False))


def test_after_the_end_the_port_is_free(ports):
    ports.close()

    listener(ports.chosen["http_port"], shared=False).close()
