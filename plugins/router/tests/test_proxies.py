"""The files for nginx, haproxy and Envoy that the page of the router shows, before three servers."""

import pytest
from routing.fronts import front, is_installed
from routing.grpc_servers import Calls, request
from routing.requests import ask, inputs, outputs, until


@pytest.mark.parametrize("name", ["nginx", "haproxy", "envoy"])
def test_a_proxy_spreads_requests_over_the_servers(name, three, tmp_path):
    if not is_installed(name):
        pytest.skip(f"{name} is not installed")
    servers = [tuple(map(int, each.address.split(":")[1:])) for each in three]
    with front(name, servers, tmp_path) as (_, (http, grpc)):
        until(lambda: ask(http, "/v2/health/ready").status == 200)
        calls = Calls(grpc)

        over_http = [outputs(ask(http, "/v2/models/who/infer", inputs(5.0)))[-1] for _ in range(12)]
        over_grpc = [calls.infer("who", 5.0).raw_output_contents[0][-4:] for _ in range(12)]

        assert set(over_http) == {0, 1, 2}
        assert len(set(over_grpc)) == 3
        assert calls.unary()(request("who", *range(100_000))).outputs[0].shape == [100_001]
        calls.close()
