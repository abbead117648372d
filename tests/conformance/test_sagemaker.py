"""The endpoints of Amazon SageMaker for one model."""

import json

import numpy as np
import pytest
from conformance.launcher import free_ports
from conformance.platform_port import opened, skip_original, with_tail
from conformance.protocol import binary_tensor, data_of, refused, tensor, wait_until
from conformance.sagemaker import BINARY, BINARY_OUTPUT, BODY, split, start
from conformance.server import StartError

TWO = np.array([1, 2], "<f4").tobytes()


# one model -----------------------------------------------------------------
@pytest.fixture(scope="module")
def single(launch):
    return start(
        launch,
        ["plain"],
        "--sagemaker-thread-count=2",
        environment={"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "plain"},
    )


@pytest.fixture(scope="module")
def unready(launch):
    """A server that is live, but not ready, and has no default model."""
    return start(launch, ["fail_init"], "--exit-on-error=false", wait="live")


def test_ping_answers_when_the_server_is_ready(single):
    response = single.get("/ping")
    assert response.status == 200
    assert response.body == b""


def test_ping_fails_while_the_server_is_not_ready(unready):
    assert unready.get("/ping").status == 400


def test_ping_may_ask_whether_the_server_is_live(launch_once):
    live = start(
        launch_once,
        ["fail_init"],
        "--exit-on-error=false",
        environment={"SAGEMAKER_TRITON_PING_MODE": "live"},
        wait="live",
    )
    assert live.server.get("/v2/health/ready").status == 400
    assert live.get("/ping").status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_ping_allows_get_only(single, method):
    assert single.request(method, "/ping").status == 405


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_invocations_allow_post_only(single, method):
    assert single.request(method, "/invocations").status == 405


@pytest.mark.parametrize(
    "method, path",
    [
        ("GET", "/"),
        ("GET", "/ping/"),
        ("GET", "/invocations/plain"),
        ("GET", "/v2"),
        ("GET", "/v2/health/ready"),
        ("GET", "/metrics"),
        ("POST", "/v2/models/plain/infer"),
        ("PUT", "/models"),
        ("PUT", "/models/plain"),
    ],
)
def test_everything_else_is_a_bad_request(single, method, path):
    assert single.request(method, path).status == 400


def test_ordinary_port_has_no_endpoints_of_sagemaker(single):
    assert single.server.get("/ping").status == 404
    assert single.server.post("/invocations", BODY).status == 404


def test_invocations_ask_the_default_model(single):
    response = single.invocations({"id": "i1", **BODY})
    assert response.status == 200
    assert response.headers["Content-Type"] == "application/json"
    assert response.json == {
        "id": "i1",
        "model_name": "plain",
        "model_version": "1",
        "outputs": [{"name": "OUTPUT0", "datatype": "FP32", "shape": [2], "data": [2, 4]}],
    }


def test_invocations_without_a_default_model_are_refused(unready):
    refused(unready.invocations(BODY), 400, 404)


def test_error_of_a_request_is_refused(single):
    text = refused(single.invocations({"inputs": [tensor("ABSENT", [1])]}), 400)
    assert "ABSENT" in text
    refused(single.invocations(b"{"))


def test_binary_input_gives_json_output(single):
    body, kind = with_tail(BINARY, {"inputs": [binary_tensor("INPUT0", 8, [2])]}, TWO)
    response = single.invocations(body, Content_Type=kind)
    assert response.headers["Content-Type"] == "application/json"
    assert data_of(response) == [2, 4]


def test_type_of_a_binary_answer_tells_where_its_json_ends(single):
    response = single.invocations({**BODY, "outputs": BINARY_OUTPUT})
    head, data = split(response)
    assert "Inference-Header-Content-Length" not in response.headers
    assert head["outputs"] == [
        {"name": "OUTPUT0", "datatype": "FP32", "shape": [2], "parameters": {"binary_data_size": 8}}
    ]
    assert np.frombuffer(data, "<f4").tolist() == [2, 4]


def test_binary_input_and_output_round_trip(single):
    body, kind = with_tail(
        BINARY, {"inputs": [binary_tensor("INPUT0", 8, [2])], "outputs": BINARY_OUTPUT}, TWO
    )
    data = split(single.invocations(body, Content_Type=kind))[1]
    assert np.frombuffer(data, "<f4").tolist() == [2, 4]


def test_header_size_of_zero_is_a_raw_binary_request(single):
    head, data = split(single.invocations(TWO, Content_Type=BINARY + "0"))
    assert head["outputs"][0]["shape"] == [2]
    assert np.frombuffer(data, "<f4").tolist() == [2, 4]


@pytest.mark.parametrize("size", ["-5", "100000", "99999999999"])
def test_header_size_outside_the_body_is_refused(single, size):
    body, _ = with_tail(BINARY, {"inputs": [binary_tensor("INPUT0", 8, [2])]}, TWO)
    refused(single.invocations(body, Content_Type=BINARY + size), 400)
    assert single.get("/ping").status == 200


@pytest.mark.parametrize("size", ["", "abc"])
def test_header_size_that_is_no_number_is_refused(single, launcher, size):
    skip_original(launcher, "the original server of 24.10 reads any text as zero")
    body, _ = with_tail(BINARY, {"inputs": [binary_tensor("INPUT0", 8, [2])]}, TWO)
    refused(single.invocations(body, Content_Type=BINARY + size), 400)


@pytest.mark.parametrize("size", ["1", "10"])
def test_header_size_that_cuts_the_json_is_refused(single, size):
    body, _ = with_tail(BINARY, {"inputs": [binary_tensor("INPUT0", 8, [2])]}, TWO)
    refused(single.invocations(body, Content_Type=BINARY + size))


def test_binary_type_must_be_the_start_of_the_header(single):
    body, kind = with_tail(BINARY, {"inputs": [binary_tensor("INPUT0", 8, [2])]}, TWO)
    refused(single.invocations(body, Content_Type=f"text/plain, {kind}"), 400)


def test_header_of_the_ordinary_protocol_is_ignored(single):
    assert data_of(single.invocations(BODY, Inference_Header_Content_Length="3")) == [2, 4]
    body, kind = with_tail(BINARY, {"inputs": [binary_tensor("INPUT0", 8, [2])]}, TWO)
    size = kind[len(BINARY) :]
    refused(single.invocations(body, Inference_Header_Content_Length=size), 400)
    response = single.invocations(body, Content_Type=kind, Inference_Header_Content_Length="3")
    assert data_of(response) == [2, 4]


def test_answers_are_never_compressed(single):
    response = single.invocations(BODY, Accept_Encoding="gzip, deflate")
    assert "Content-Encoding" not in response.headers
    assert data_of(response) == [2, 4]


@pytest.mark.parametrize("encoding", ["gzip", "br"])
def test_requests_are_never_decompressed(single, encoding):
    assert data_of(single.invocations(BODY, Content_Encoding=encoding)) == [2, 4]


# generate ------------------------------------------------------------------
NO_GENERATE = "the original server of 24.10 has no generate on SageMaker's port"


def test_invocations_may_generate(launch_once, launcher):
    skip_original(launcher, NO_GENERATE)
    sagemaker = start(
        launch_once,
        ["generator"],
        environment={
            "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "generator",
            "SAGEMAKER_TRITON_INFERENCE_TYPE": "generate",
        },
    )
    response = sagemaker.invocations({"text_input": "hello"})
    assert response.status == 200
    assert response.json == {
        "model_name": "generator",
        "model_version": "1",
        "text_output": "hello",
        "length": 5,
    }
    refused(sagemaker.invocations({}), 400)
    assert sagemaker.get("/invocations").status == 405


def test_invocations_may_generate_a_stream(launch_once, launcher):
    skip_original(launcher, NO_GENERATE)
    sagemaker = start(
        launch_once,
        ["generator_stream"],
        environment={
            "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "generator_stream",
            "SAGEMAKER_TRITON_INFERENCE_TYPE": "generate_stream",
        },
    )
    response = sagemaker.invocations({"text_input": "hey", "count": 3})
    assert response.headers["Content-Type"].startswith("text/event-stream")
    events = [
        json.loads(part[len("data: ") :]) for part in response.body.decode().split("\n\n")[:-1]
    ]
    assert [(event["text_output"], event["index"]) for event in events] == [
        ("hey", 0),
        ("hey", 1),
        ("hey", 2),
    ]


# options -------------------------------------------------------------------
def test_sagemaker_is_off_unless_asked_for(launch_once):
    (port,) = free_ports(1)
    launch_once([], f"--sagemaker-port={port}")
    assert not wait_until(lambda: opened(port), timeout=1)


@pytest.mark.parametrize("other", ["http", "grpc", "metrics"])
def test_port_of_another_endpoint_ends_the_start(launch_once, other):
    (port,) = free_ports(1)
    with pytest.raises(StartError) as error:
        start(launch_once, [], f"--sagemaker-port={port}", f"--{other}-port={port}")
    assert error.value.returncode not in (0, None)


def test_port_outside_the_safe_range_ends_the_start(launch_once):
    with pytest.raises(StartError) as error:
        start(launch_once, [], "--sagemaker-safe-port-range=1-2")
    assert error.value.returncode not in (0, None)


def test_ports_inside_the_safe_range_are_allowed(launch_once):
    sagemaker = start(launch_once, [], "--sagemaker-safe-port-range=3-65535")
    assert sagemaker.get("/ping").status == 200


@pytest.mark.parametrize("value", ["12", "a-b"])
def test_malformed_safe_range_ends_the_start(launch_once, value):
    with pytest.raises(StartError) as error:
        start(launch_once, [], f"--sagemaker-safe-port-range={value}")
    assert error.value.returncode not in (0, None)


def test_restricted_apis_are_restricted_for_sagemaker(launch_once, launcher):
    skip_original(launcher, "the original server of 24.10 restricts its ordinary port alone")
    sagemaker = start(
        launch_once,
        ["plain"],
        "--http-restricted-api=health,inference,model-repository:key=secret",
        environment={"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "plain"},
        wait="grpc",
    )
    for method, path, body in [
        ("GET", "/ping", None),
        ("POST", "/invocations", BODY),
        ("GET", "/models", None),
        ("GET", "/models/absent", None),
        ("POST", "/models", {"model_name": "absent", "url": "/opt/ml/models/absent/model"}),
        ("DELETE", "/models/absent", None),
    ]:
        refused(sagemaker.request(method, path, body), 403)
        refused(sagemaker.request(method, path, body, {"key": "wrong"}), 403)
        assert sagemaker.request(method, path, body, {"key": "secret"}).status != 403
    assert sagemaker.get("/ping", headers={"key": "secret"}).status == 200
    assert data_of(sagemaker.invocations(BODY, key="secret")) == [2, 4]
