"""One trace from a client through Serve's proxies, or by handle, to the spans of a replica's server.

docs/operate/ray.md has it under "Logs, metrics and ids".
"""

import json
import time
import urllib.request

import numpy as np
import pytest
import tritonclient.grpc as triton
from collector import Collector
from core_ray import CoreDeployment
from ray import serve

PARENT = "b7ad6b7169203331"
PIXELS = np.zeros((1, 8, 8), np.float32)


@pytest.fixture(scope="module")
def collector():
    found = Collector().start()
    yield found
    found.close()


@pytest.fixture(scope="module")
def traced(cluster, repository, collector):
    """The handle of one replica that traces each request."""
    bound = CoreDeployment.bind(model_repository=str(repository), trace_config=collector.config)
    yield serve.run(bound, name="traced", route_prefix="/traced")
    serve.delete("traced")


def headers(trace):
    return {"traceparent": f"00-{trace}-{PARENT}-01", "tracestate": "vendor=1"}


def spans(collector, chosen, *names, seconds=120):
    """Return the spans with these names among those that `chosen` accepts, once all have come."""
    end = time.monotonic() + seconds
    while True:
        found = {each.name: each for each in list(collector.spans) if chosen(each)}
        if set(names) <= found.keys():
            return [found[name] for name in names]
        assert time.monotonic() < end, found
        time.sleep(0.1)


def check(collector, trace):
    """The spans of a request with the id `mine` are those of its client's trace."""
    request, model = spans(collector, lambda each: each.trace == trace, "InferRequest", "digits")
    assert (request.parent, request.state) == (PARENT, "vendor=1")
    assert model.parent == request.id
    assert model.attributes["triton.request_id"] == "mine"


def test_a_request_through_the_http_proxy_belongs_to_the_trace_of_its_client(
    traced, cluster, collector
):
    trace = f"{1:032x}"
    tensor = {"name": "pixels", "shape": [1, 8, 8], "datatype": "FP32"}
    tensor["data"] = PIXELS.ravel().tolist()
    body = json.dumps({"id": "mine", "inputs": [tensor]}).encode()
    url = f"http://127.0.0.1:{cluster}/traced/v2/models/digits/infer"

    with urllib.request.urlopen(
        urllib.request.Request(url, body, {**headers(trace), "X-Request-ID": "of-serve"}),
        timeout=60,
    ) as response:
        assert json.load(response)["id"] == "mine"
        assert response.headers["X-Request-ID"] == "of-serve"

    check(collector, trace)


def test_a_request_through_the_grpc_proxy_belongs_to_the_trace_of_its_client(
    traced, grpc_port, collector
):
    trace = f"{2:032x}"
    tensor = triton.InferInput("pixels", PIXELS.shape, "FP32")
    tensor.set_data_from_numpy(PIXELS)

    with triton.InferenceServerClient(f"127.0.0.1:{grpc_port}") as client:
        metadata = {**headers(trace), "application": "traced"}
        client.infer("digits", [tensor], request_id="mine", headers=metadata)

    check(collector, trace)


def test_a_call_by_handle_belongs_to_the_trace_of_its_caller(traced, collector):
    trace = f"{3:032x}"
    parent = headers(trace)["traceparent"]

    traced.infer.remote("digits", {"pixels": PIXELS}, id="mine", traceparent=parent).result(
        timeout_s=60
    )

    (request,) = spans(collector, lambda each: each.trace == trace, "InferRequest")
    assert request.parent == PARENT


def test_a_call_by_handle_has_the_id_of_serve_in_its_span(traced, collector):
    response = traced.infer.remote("digits", {"pixels": PIXELS})
    id = response.result(timeout_s=60).id

    (model,) = spans(
        collector, lambda each: each.attributes.get("triton.request_id") == id, "digits"
    )

    assert id == response.request_id
    assert model.attributes["triton.model_version"] in (1, "1")
