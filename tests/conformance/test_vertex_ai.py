"""The endpoints of Vertex AI: health, prediction, and redirection by a header."""

import numpy as np
import pytest
from conformance import platform_port
from conformance.launcher import free_ports
from conformance.platform_port import PlatformPort, hyphened, opened, skip_original, with_tail
from conformance.protocol import (
    binary_tensor,
    data_of,
    refused,
    split_binary,
    tensor,
    wait_until,
)
from conformance.server import StartError

BINARY = "application/vnd.vertex-ai-triton.binary+json;json-header-size="
PREDICT = "/v1/endpoints/12/deployedModels/34:predict"
HEALTH = "/v1/endpoints/12/deployedModels/34"
ROUTES = {"AIP_PREDICT_ROUTE": PREDICT, "AIP_HEALTH_ROUTE": HEALTH}
BODY = {"inputs": [tensor("INPUT0", [1, 2])]}
BINARY_OUTPUT = [{"name": "OUTPUT0", "parameters": {"binary_data": True}}]
TWO = np.array([1, 2], "<f4").tobytes()


class VertexAI(PlatformPort):
    def predict(self, body, **headers):
        """Headers are named with an underscore for each hyphen."""
        return self.post(PREDICT, body, headers=hyphened(headers))

    def redirect(self, path, body=None, **headers):
        return self.predict(body, X_Vertex_Ai_Triton_Redirect=path, **headers)


def start(launch, models, *options, environment=ROUTES, **kwargs):
    return platform_port.start(
        launch, VertexAI, "vertex-ai", models, *options, environment=environment, **kwargs
    )


@pytest.fixture(scope="module")
def vertex(launch):
    return start(
        launch,
        ["plain", "add_sub", "generator"],
        "--vertex-ai-default-model=plain",
        "--vertex-ai-thread-count=2",
        "--model-control-mode=explicit",
        "--load-model=plain",
        "--load-model=add_sub",
    )


@pytest.fixture(scope="module")
def container(launch):
    """Start a server like Vertex AI does, with the settings in environment variables."""
    (port,) = free_ports(1)
    environment = {
        **ROUTES,
        "AIP_MODE": "PREDICTION",
        "AIP_HTTP_PORT": str(port),
        "AIP_STORAGE_URI": "/no/such/folder",  # the option of the repository goes before it
    }
    # The launcher checks readiness on the HTTP port.
    return VertexAI(launch(["plain"], "--allow-http=true", environment=environment), port)


# health and prediction -----------------------------------------------------
def test_health_route_answers_when_the_server_is_ready(vertex):
    response = vertex.get(HEALTH)
    assert response.status == 200
    assert response.body == b""


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_health_route_allows_get_only(vertex, method):
    assert vertex.request(method, HEALTH).status == 405


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_predict_route_allows_post_only(vertex, method):
    assert vertex.request(method, PREDICT).status == 405


@pytest.mark.parametrize(
    "method, path",
    [
        ("GET", "/"),
        ("GET", HEALTH + "/"),
        ("POST", PREDICT + "/more"),
        ("GET", "/v2"),
        ("GET", "/v2/health/ready"),
        ("GET", "/metrics"),
        ("POST", "/v2/models/plain/infer"),
    ],
)
def test_everything_else_is_a_bad_request(vertex, method, path):
    assert vertex.request(method, path).status == 400


def test_ordinary_port_has_no_routes_of_vertex_ai(vertex):
    assert vertex.server.get(HEALTH).status == 404
    assert vertex.server.post(PREDICT, BODY).status == 404


def test_prediction_asks_the_default_model(vertex):
    response = vertex.predict({"id": "p1", **BODY})
    assert response.status == 200
    assert response.headers["Content-Type"] == "application/json"
    assert response.json == {
        "id": "p1",
        "model_name": "plain",
        "model_version": "1",
        "outputs": [{"name": "OUTPUT0", "datatype": "FP32", "shape": [2], "data": [2, 4]}],
    }


def test_only_model_is_the_default_model(container):
    assert data_of(container.predict(BODY)) == [2, 4]


def test_only_model_that_is_loaded_is_the_default_model(launch_once):
    vertex = start(
        launch_once, ["plain", "add_sub"], "--model-control-mode=explicit", "--load-model=plain"
    )
    assert data_of(vertex.predict(BODY)) == [2, 4]


def test_error_of_a_request_is_refused(vertex):
    assert "ABSENT" in refused(vertex.predict({"inputs": [tensor("ABSENT", [1])]}), 400)
    refused(vertex.predict(b"{"))


# binary tensors ------------------------------------------------------------
def test_binary_input_gives_json_output(vertex):
    body, kind = with_tail(BINARY, {"inputs": [binary_tensor("INPUT0", 8, [2])]}, TWO)
    response = vertex.predict(body, Content_Type=kind)
    assert response.headers["Content-Type"] == "application/json"
    assert data_of(response) == [2, 4]


def test_binary_output_has_the_headers_of_the_ordinary_protocol(vertex):
    body, kind = with_tail(
        BINARY, {"inputs": [binary_tensor("INPUT0", 8, [2])], "outputs": BINARY_OUTPUT}, TWO
    )
    for response in [
        vertex.predict({**BODY, "outputs": BINARY_OUTPUT}),
        vertex.predict(body, Content_Type=kind),
    ]:
        assert response.headers["Content-Type"] == "application/octet-stream"
        head, data = split_binary(response)
        assert head["outputs"][0]["parameters"] == {"binary_data_size": 8}
        assert np.frombuffer(data, "<f4").tolist() == [2, 4]


def test_header_size_of_zero_is_a_raw_binary_request(vertex):
    head, data = split_binary(vertex.predict(TWO, Content_Type=BINARY + "0"))
    assert head["outputs"][0]["shape"] == [2]
    assert np.frombuffer(data, "<f4").tolist() == [2, 4]


@pytest.mark.parametrize("size", ["-5", "100000", "99999999999"])
def test_header_size_outside_the_body_is_refused(vertex, size):
    body, _ = with_tail(BINARY, {"inputs": [binary_tensor("INPUT0", 8, [2])]}, TWO)
    refused(vertex.predict(body, Content_Type=BINARY + size), 400)
    assert vertex.get(HEALTH).status == 200


@pytest.mark.parametrize("size", ["", "abc"])
def test_header_size_that_is_no_number_is_refused(vertex, launcher, size):
    skip_original(launcher, "the original server of 24.10 reads any text as zero")
    body, _ = with_tail(BINARY, {"inputs": [binary_tensor("INPUT0", 8, [2])]}, TWO)
    refused(vertex.predict(body, Content_Type=BINARY + size), 400)


@pytest.mark.parametrize("size", ["1", "10"])
def test_header_size_that_cuts_the_json_is_refused(vertex, size):
    body, _ = with_tail(BINARY, {"inputs": [binary_tensor("INPUT0", 8, [2])]}, TWO)
    refused(vertex.predict(body, Content_Type=BINARY + size))


def test_binary_type_must_be_the_start_of_the_header(vertex):
    body, kind = with_tail(BINARY, {"inputs": [binary_tensor("INPUT0", 8, [2])]}, TWO)
    refused(vertex.predict(body, Content_Type=f"text/plain, {kind}"), 400)


def test_header_of_the_ordinary_protocol_is_ignored(vertex):
    assert data_of(vertex.predict(BODY, Inference_Header_Content_Length="3")) == [2, 4]
    body, kind = with_tail(BINARY, {"inputs": [binary_tensor("INPUT0", 8, [2])]}, TWO)
    refused(vertex.predict(body, Inference_Header_Content_Length=kind[len(BINARY) :]), 400)


def test_answers_are_never_compressed(vertex):
    response = vertex.predict(BODY, Accept_Encoding="gzip, deflate")
    assert "Content-Encoding" not in response.headers
    assert data_of(response) == [2, 4]


@pytest.mark.parametrize("encoding", ["gzip", "br"])
def test_requests_are_never_decompressed(vertex, encoding):
    assert data_of(vertex.predict(BODY, Content_Encoding=encoding)) == [2, 4]


# redirection ---------------------------------------------------------------
@pytest.mark.parametrize(
    "path",
    [
        "v2",
        "v2/health/live",
        "v2/health/ready",
        "v2/models/plain",
        "v2/models/plain/versions/1",
        "v2/models/plain/ready",
        "v2/models/plain/versions/1/ready",
        "v2/models/plain/config",
        "v2/models/plain/versions/1/config",
        "v2/models/plain/stats",
        "v2/models/plain/versions/1/stats",
        "v2/models/stats",
        "v2/models/generator/ready",
        "v2/models/absent",
        "v2/models/absent/ready",
        "v2/systemsharedmemory/status",
        "v2/systemsharedmemory/region/absent/status",
        "v2/cudasharedmemory/status",
    ],
)
def test_redirection_by_post_answers_what_the_ordinary_port_answers_to_get(vertex, path):
    found = vertex.redirect(path)
    expected = vertex.server.get("/" + path)
    assert (found.status, found.body) == (expected.status, expected.body)


@pytest.mark.parametrize("body", [None, {"ready": True}])
def test_redirection_to_the_repository_index(vertex, body):
    found = vertex.redirect("v2/repository/index", body)
    assert found.status == 200
    names = {entry["name"] for entry in found.json if entry.get("state") == "READY"}
    assert names == {"plain", "add_sub"}
    assert len(found.json) == (3 if body is None else 2)


def test_redirection_to_the_metrics(vertex):
    response = vertex.redirect("metrics")
    assert response.status == 200
    assert b"nv_inference_request_success" in response.body


@pytest.mark.parametrize("path", ["v2/models/add_sub/infer", "v2/models/add_sub/versions/1/infer"])
def test_redirection_to_another_model(vertex, path):
    inputs = [tensor("INPUT0", [1, 2, 3, 4], [1, 4]), tensor("INPUT1", [1] * 4, [1, 4])]
    assert data_of(vertex.redirect(path, {"inputs": inputs})) == [2, 3, 4, 5]


def test_redirection_takes_binary_tensors(vertex):
    body, kind = with_tail(BINARY, {"inputs": [binary_tensor("INPUT0", 8, [2])]}, TWO)
    assert data_of(vertex.redirect("v2/models/plain/infer", body, Content_Type=kind)) == [2, 4]


def test_redirection_to_an_unknown_model_is_refused(vertex):
    refused(vertex.redirect("v2/models/absent/infer", BODY), 400, 404)


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
@pytest.mark.parametrize("path", ["v2", "v2/health/ready", "metrics", "unknown"])
def test_redirection_needs_post(vertex, method, path):
    response = vertex.request(method, PREDICT, headers={"X-Vertex-Ai-Triton-Redirect": path})
    assert response.status == 405


@pytest.mark.parametrize(
    "path",
    [
        "",
        "unknown",
        "/v2",
        "v2/",
        "v2/health/unknown",
        "v2/logging",
        "v2/trace/setting",
        "v2/models/plain/trace/setting",
        PREDICT[1:],
    ],
)
def test_redirection_to_anything_else_is_a_bad_request(vertex, path):
    assert vertex.redirect(path).status == 400


def test_health_route_is_not_redirected(vertex):
    redirect = {"X-Vertex-Ai-Triton-Redirect": "v2"}
    response = vertex.get(HEALTH, headers=redirect)
    assert (response.status, response.body) == (200, b"")
    assert vertex.request("POST", HEALTH, headers=redirect).status == 405


@pytest.mark.parametrize(
    "path",
    [
        "v2/repository/models/plain/load",
        "v2/repository/models/plain/unload",
        "v2/systemsharedmemory/region/mine/register",
        "v2/systemsharedmemory/region/mine/unregister",
        "v2/systemsharedmemory/unregister",
        "v2/cudasharedmemory/region/mine/register",
        "v2/cudasharedmemory/unregister",
    ],
)
def test_redirection_to_what_changes_the_server_is_forbidden(vertex, launcher, path):
    skip_original(launcher, "the original server of 24.10 redirects it")
    assert vertex.redirect(path).status == 403
    assert vertex.server.ready("plain")


# options -------------------------------------------------------------------
def test_vertex_ai_turns_on_and_grpc_off_by_the_environment(container):
    assert container.get(HEALTH).status == 200
    assert not opened(container.server.grpc_port)


def test_vertex_ai_turns_http_off_by_the_environment(launch_once):
    (port,) = free_ports(1)
    environment = {**ROUTES, "AIP_MODE": "PREDICTION", "AIP_HTTP_PORT": str(port)}
    server = launch_once(["plain"], "--allow-grpc=true", environment=environment, wait="grpc")
    assert VertexAI(server, port).get(HEALTH).status == 200
    assert not opened(server.http_port)


def test_option_goes_before_the_port_of_the_environment(launch_once):
    (other,) = free_ports(1)
    vertex = start(launch_once, ["plain"], environment={**ROUTES, "AIP_HTTP_PORT": str(other)})
    assert vertex.get(HEALTH).status == 200
    assert not opened(other)


@pytest.mark.parametrize(
    "options, environment",
    [
        ([], ROUTES),
        (["--allow-vertex-ai=false", "--allow-http=true"], {**ROUTES, "AIP_MODE": "PREDICTION"}),
    ],
)
def test_vertex_ai_is_off_unless_asked_for(launch_once, options, environment):
    (port,) = free_ports(1)
    launch_once([], f"--vertex-ai-port={port}", *options, environment=environment)
    assert not wait_until(lambda: opened(port), timeout=1)


@pytest.mark.parametrize("missing", list(ROUTES))
def test_missing_route_ends_the_server(launch_once, missing):
    environment = {name: ROUTES[name] for name in ROUTES if name != missing}
    (port,) = free_ports(1)
    server = launch_once(
        ["plain"],
        "--allow-vertex-ai=true",
        f"--vertex-ai-port={port}",
        environment=environment,
        wait="exit",
        timeout=30,
    )
    assert server.process.returncode != 0


@pytest.mark.parametrize(
    "models, options",
    [
        (["plain", "add_sub"], []),
        ([], []),
        (["plain"], ["--vertex-ai-default-model=absent"]),
    ],
)
def test_server_without_a_default_model_is_not_healthy(launch_once, models, options):
    """It may end, or report it in its health."""
    (port,) = free_ports(1)
    try:
        server = launch_once(
            models,
            "--allow-vertex-ai=true",
            f"--vertex-ai-port={port}",
            *options,
            environment=ROUTES,
        )
        status = server.get(HEALTH, port=port).status
    except (StartError, OSError):
        return
    assert status != 200


@pytest.mark.parametrize("other", ["http", "grpc", "metrics"])
def test_port_of_another_endpoint_ends_the_start(launch_once, other):
    (port,) = free_ports(1)
    with pytest.raises(StartError) as error:
        start(launch_once, ["plain"], f"--vertex-ai-port={port}", f"--{other}-port={port}")
    assert error.value.returncode not in (0, None)


def test_port_of_the_environment_must_be_a_number(launch_once):
    with pytest.raises(StartError) as error:
        launch_once([], environment={"AIP_HTTP_PORT": "many"})
    assert error.value.returncode not in (0, None)


def test_restricted_apis_are_restricted_for_vertex_ai(launch_once, launcher):
    skip_original(launcher, "the original server of 24.10 restricts its ordinary port alone")
    vertex = start(
        launch_once,
        ["plain"],
        "--http-restricted-api=health,inference,metadata,model-repository:key=secret",
        wait="grpc",
    )
    refused(vertex.get(HEALTH), 403)
    assert vertex.get(HEALTH, headers={"key": "secret"}).status == 200
    refused(vertex.predict(BODY), 403)
    refused(vertex.predict(BODY, key="wrong"), 403)
    assert data_of(vertex.predict(BODY, key="secret")) == [2, 4]
    for path in ["v2", "v2/health/live", "v2/models/plain", "v2/repository/index"]:
        refused(vertex.redirect(path), 403)
        assert vertex.redirect(path, key="secret").status == 200
