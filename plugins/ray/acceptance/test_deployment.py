"""A CoreDeployment in a real Ray: calls by handle, requests over HTTP, its own ports."""

import asyncio
import json
import time
import urllib.error
import urllib.request

import numpy as np
import pytest
from core_ray import CoreDeployment, Response
from ray import serve

import core

PIXELS = np.random.default_rng(0).random((3, 8, 8), np.float32)


@pytest.fixture(scope="module")
def expected(repository):
    with core.Server(model_repository=repository) as server:
        return server.infer("digits", {"pixels": PIXELS})["probabilities"]


@pytest.fixture(scope="module")
def deployed(cluster, repository):
    """One replica of all models with ports of its own: (handle, port of the proxy)."""
    handle = serve.run(
        CoreDeployment.bind(
            model_repository=str(repository),
            http_port=0,
            grpc_port=0,
            http_address="127.0.0.1",
            grpc_address="127.0.0.1",
        ),
        name="models",
        route_prefix="/",
    )
    yield handle, cluster
    serve.delete("models")


def asked(port, path, body=None, **headers):
    url = f"http://127.0.0.1:{port}{path}"
    request = urllib.request.Request(url, body and json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as response:
        return response.headers, response.read()


def infer_body(array):
    tensor = {
        "name": "pixels",
        "shape": list(array.shape),
        "datatype": "FP32",
        "data": array.ravel().tolist(),
    }
    return {"id": "mine", "inputs": [tensor]}


def test_a_call_by_handle_takes_arrays_and_returns_them(deployed, expected):
    handle, _ = deployed

    found = handle.infer.remote("digits", {"pixels": PIXELS}).result(timeout_s=60)

    assert type(found) is Response
    assert (found.model_name, found.model_version) == ("digits", 1)
    np.testing.assert_allclose(found["probabilities"], expected, rtol=1e-5)


def test_the_id_of_a_call_is_that_of_its_request_in_serve(deployed):
    handle, _ = deployed

    response = handle.infer.remote("digits", {"pixels": PIXELS})

    assert response.result(timeout_s=60).id == response.request_id
    named = handle.infer.remote("digits", {"pixels": PIXELS}, id="mine").result(timeout_s=60)
    assert named.id == "mine"


def test_an_error_of_the_server_is_a_core_error_for_the_caller(deployed):
    handle, _ = deployed

    with pytest.raises(core.CoreError, match="pixels") as found:
        handle.infer.remote("digits", {"pixels": PIXELS[:, :4]}).result(timeout_s=60)

    assert found.value.kind is core.Kind.INVALID


def test_a_cancelled_call_ends_its_request(deployed):
    handle, _ = deployed
    response = handle.infer.remote("wait", {"ms": np.array([[1500]], np.int32)})
    waiting = handle.infer.remote("wait", {"ms": np.array([[60_000]], np.int32)})
    time.sleep(0.5)  # until Serve has passed on both

    waiting.cancel()

    response.result(timeout_s=60)
    last = handle.infer.remote("wait", {"ms": np.array([[1]], np.int32)})
    assert last.result(timeout_s=30)["ms_out"] == [[1]]


def test_a_stream_is_a_stream_of_responses(deployed):
    handle, _ = deployed

    stream = handle.options(stream=True).stream.remote("digits", {"pixels": PIXELS})

    assert [each["probabilities"].shape for each in stream] == [(3, 10)]


def test_the_protocol_is_served_through_the_proxy(deployed, expected):
    _, port = deployed

    headers, body = asked(port, "/v2/models/digits/infer", infer_body(PIXELS))

    found = json.loads(body)
    assert found["id"] == "mine"
    np.testing.assert_allclose(
        np.reshape(found["outputs"][0]["data"], (3, 10)), expected, rtol=1e-5
    )
    assert headers["X-Request-ID"]
    assert json.loads(asked(port, "/v2/models/digits")[1])["name"] == "digits"
    assert asked(port, "/v2/health/ready")[1] == b""


def test_an_error_over_http_keeps_its_status(deployed):
    _, port = deployed

    with pytest.raises(urllib.error.HTTPError) as found:
        asked(port, "/v2/models/digits/infer", {"inputs": []})

    assert found.value.code == 400
    assert "digits" in json.load(found.value)["error"]


def test_the_ports_of_a_replica_are_open(deployed, expected):
    import tritonclient.grpc as triton

    handle, _ = deployed
    ports = handle.ports.remote().result(timeout_s=60)

    assert set(ports) == {"http", "grpc"}
    assert json.loads(asked(ports["http"], "/v2")[1])["name"]
    tensor = triton.InferInput("pixels", PIXELS.shape, "FP32")
    tensor.set_data_from_numpy(PIXELS)
    client = triton.InferenceServerClient(f"127.0.0.1:{ports['grpc']}")
    found = client.infer("digits", [tensor]).as_numpy("probabilities")
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_another_deployment_calls_it_by_its_handle(run, cluster, repository, expected):
    @serve.deployment
    class Vote:
        """Asks twice at once, and returns the digit of each row."""

        def __init__(self, models):
            self.models = models

        async def __call__(self, request):
            pixels = np.array(await request.json(), np.float32)
            calls = [self.models.infer.remote("digits", {"pixels": pixels}) for _ in range(2)]
            first, second = await asyncio.gather(*calls)
            assert (first["probabilities"] == second["probabilities"]).all()
            return first["probabilities"].argmax(axis=1).tolist()

    models = CoreDeployment.bind(model_repository=str(repository))
    run(Vote.bind(models), name="vote", route_prefix="/vote")

    _, body = asked(cluster, "/vote", PIXELS.tolist())

    assert json.loads(body) == expected.argmax(axis=1).tolist()


def test_a_prefix_of_the_application_precedes_the_paths(run, cluster, repository):
    run(CoreDeployment.bind(model_repository=str(repository)), "prefixed", "/a/b")

    _, body = asked(cluster, "/a/b/v2/models/digits")

    assert json.loads(body)["name"] == "digits"


def test_user_config_names_the_models_that_are_loaded(run, repository):
    deployment = CoreDeployment.options(user_config={"models": ["digits"]})
    options = {"model_repository": str(repository), "model_control_mode": "explicit"}
    handle = run(deployment.bind(**options), "chosen", "/chosen")

    answered = handle.infer.remote("digits", {"pixels": PIXELS}).result(timeout_s=60)

    assert answered.model_name == "digits"
    with pytest.raises(core.CoreError, match="breast_cancer"):
        handle.infer.remote("breast_cancer", {}).result(timeout_s=60)


def test_an_unknown_member_of_user_config_fails_the_deployment_with_its_name(run, repository):
    deployment = CoreDeployment.options(
        user_config={"model": ["digits"]}, max_constructor_retry_count=1
    )

    with pytest.raises(RuntimeError):
        run(deployment.bind(model_repository=str(repository)), "unknown", "/unknown")

    (found,) = serve.status().applications["unknown"].deployments.values()
    assert "user_config has 'model', which is unknown" in found.message


def test_a_model_that_does_not_load_fails_the_deployment_with_its_error(run, tmp_path):
    (tmp_path / "broken" / "1").mkdir(parents=True)
    (tmp_path / "broken" / "1" / "model.onnx").write_bytes(b"no model")
    bound = CoreDeployment.options(max_constructor_retry_count=1).bind(
        model_repository=str(tmp_path)
    )

    with pytest.raises(RuntimeError):
        run(bound, "broken", "/broken")

    (deployment,) = serve.status().applications["broken"].deployments.values()
    assert "'broken'" in deployment.message and "Protobuf parsing failed" in deployment.message


def test_requests_in_flight_are_answered_when_the_application_is_deleted(run, repository):
    handle = run(CoreDeployment.bind(model_repository=str(repository)), "drained", "/drained")
    response = handle.infer.remote("wait", {"ms": np.array([[2000]], np.int32)})
    time.sleep(0.5)  # until Serve has passed it on

    serve.delete("drained")

    assert response.result(timeout_s=60)["ms_out"] == [[2000]]
