"""tritonfrontend: ports for a server of the same process, with real clients."""

import urllib.request

import numpy as np
import pytest
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
import tritonserver
from tritonfrontend import KServeGrpc, KServeHttp, Metrics

from core import plugins
from core.errors import unavailable

CLIENTS = {KServeHttp: httpclient, KServeGrpc: grpcclient}


def options(kind, **more):
    return kind.Options(address="127.0.0.1", port=0, **more)


@pytest.mark.parametrize("kind", CLIENTS)
def test_a_client_is_served_by_the_server_of_the_program(server, kind):
    client_type = CLIENTS[kind]
    x = np.array([1, 2], np.float32)

    with kind(server, options(kind)) as service:
        client = client_type.InferenceServerClient(f"127.0.0.1:{service.port}")
        given = client_type.InferInput("INPUT0", [2], "FP32")
        given.set_data_from_numpy(x)
        found = client.infer("identity", [given]).as_numpy("OUTPUT0")
        assert client.is_server_ready()
        client.close()
        address = f"127.0.0.1:{service.port}"

    assert found.tolist() == [1, 2]
    with pytest.raises(Exception):  # noqa: B017  each client has its own error
        client_type.InferenceServerClient(address).is_server_live()


def test_metrics_have_a_port(server):
    with Metrics(server, options(Metrics)) as service:
        url = f"http://127.0.0.1:{service.port}/metrics"
        text = urllib.request.urlopen(url).read().decode()

    assert "nv_inference_request_success" in text


def test_several_ports_of_one_protocol_are_open_at_once(server):
    with (
        KServeHttp(server, options(KServeHttp)) as one,
        KServeHttp(server, options(KServeHttp)) as two,
    ):
        assert one.port != two.port
        for each in (one, two):
            with urllib.request.urlopen(
                f"http://127.0.0.1:{each.port}/v2/health/ready"
            ) as response:
                assert response.status == 200


@pytest.mark.parametrize("kind", [KServeHttp, KServeGrpc, Metrics])
def test_a_port_starts_once_and_stops_twice(server, kind):
    service = kind(server, options(kind))
    service.start()

    with pytest.raises(tritonserver.AlreadyExistsError, match="already running"):
        service.start()
    service.stop()
    service.stop()
    service.start()
    service.stop()


def test_a_port_that_is_taken_is_unavailable(server):
    with KServeHttp(server, options(KServeHttp)) as service:
        taken = KServeHttp.Options(address="127.0.0.1", port=service.port)

        with pytest.raises(tritonserver.UnavailableError, match=str(service.port)):
            KServeHttp(server, taken).start()


def test_a_port_that_cannot_open_leaves_nothing_behind(server, monkeypatch):
    frontend = plugins.frontends()["http"].load()
    stop, stopped = frontend.stop, []

    async def fails(self):
        raise unavailable("no such address")

    async def recorded(self, timeout_s):
        stopped.append(self)
        await stop(self, timeout_s)

    monkeypatch.setattr(frontend, "start", fails)
    monkeypatch.setattr(frontend, "stop", recorded)
    before = server._embedded._inner.options

    with pytest.raises(tritonserver.UnavailableError, match="no such address"):
        KServeHttp(server, options(KServeHttp)).start()

    assert len(stopped) == 1
    assert server._embedded._inner.options is before


def test_the_server_may_stop_before_its_ports(explicit):
    services = [kind(explicit, options(kind)) for kind in (KServeHttp, KServeGrpc, Metrics)]
    for each in services:
        each.start()

    explicit.stop()

    assert [each.port for each in services] == [0, 0, 0]
    for each in services:
        each.stop()


def test_a_server_that_is_not_started_has_no_ports():
    with pytest.raises(tritonserver.InvalidArgumentError, match="not started"):
        KServeHttp(tritonserver.Server(model_repository="models"))


@pytest.mark.parametrize("kind", [KServeHttp, KServeGrpc, Metrics])
@pytest.mark.parametrize("wrong", [{"port": 8001}, KServeHttp, "8000"])
def test_options_must_be_of_the_frontends_own_class(server, kind, wrong):
    with pytest.raises(tritonserver.InvalidArgumentError, match="Incorrect type for options"):
        kind(server, wrong)


@pytest.mark.parametrize(
    "kind, wrong",
    [
        (KServeHttp, {"port": -15}),
        (KServeHttp, {"port": 65536}),
        (KServeHttp, {"thread_count": 0}),
        (KServeHttp, {"header_forward_pattern": 10}),
        (KServeGrpc, {"port": -5}),
        (KServeGrpc, {"keepalive_timeout_ms": -1}),
        (KServeGrpc, {"http2_max_ping_strikes": -1}),
        (KServeGrpc, {"max_connection_age_ms": -1}),
        (KServeGrpc, {"infer_allocation_pool_size": "big"}),
        (KServeGrpc, {"infer_compression_level": 9}),
        (KServeGrpc, {"server_key": 10}),
        (KServeGrpc, {"use_ssl": True}),
        (Metrics, {"thread_count": "ten"}),
        (Metrics, {"port": True}),
    ],
)
def test_a_wrong_option_is_refused_when_it_is_made(kind, wrong):
    with pytest.raises(tritonserver.InvalidArgumentError):
        kind.Options(**wrong)


def test_every_option_of_grpc_reaches_the_frontend(server):
    level = KServeGrpc.Grpc_compression_level.HIGH
    more = {
        "reuse_port": True,
        "keepalive_time_ms": 1000,
        "keepalive_permit_without_calls": True,
        "http2_max_pings_without_data": 7,
        "http2_min_recv_ping_interval_without_data_ms": 11,
        "http2_max_ping_strikes": 3,
        "max_connection_age_ms": 60000,
        "max_connection_age_grace_ms": 500,
        "infer_compression_level": level,
        "infer_allocation_pool_size": 9,
        "forward_header_pattern": "x-.*",
    }

    with KServeGrpc(server, options(KServeGrpc, **more)):
        found = server._embedded._inner.options

    assert found.value("grpc_keepalive_time") == 1000
    assert found.value("grpc_http2_min_recv_ping_interval_without_data") == 11
    assert found.value("grpc_max_connection_age") == 60000
    assert found.value("grpc_infer_response_compression_level") == "high"
    assert found.value("grpc_header_forward_pattern") == "x-.*"
