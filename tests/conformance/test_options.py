"""Options of the command line."""

import pytest
import tritonclient.grpc
from conformance.protocol import data_of, tensor, wait_until
from conformance.server import StartError
from tritonclient.utils import InferenceServerException

BODY = {"inputs": [tensor("INPUT0", [1])]}


def closed(server, port):
    try:
        server.get("/v2", port=port)
    except OSError:
        return True
    return False


def test_http_can_be_turned_off(launch_once):
    server = launch_once(["plain"], "--allow-http=false", wait="grpc")
    assert closed(server, server.http_port)
    assert server.grpc_client().is_model_ready("plain")


def test_grpc_can_be_turned_off(launch_once):
    server = launch_once(["plain"], "--allow-grpc=false")
    assert closed(server, server.grpc_port)
    assert data_of(server.infer("plain", BODY)) == [2]


def test_metrics_can_be_turned_off(launch_once):
    server = launch_once(["plain"], "--allow-metrics=false")
    assert closed(server, server.metrics_port)
    assert data_of(server.infer("plain", BODY)) == [2]


def test_server_has_the_id_of_the_option(launch_once):
    server = launch_once([], "--id=mine")
    assert server.get("/v2").json["name"] == "mine"


def test_addresses_may_be_given(launch_once):
    server = launch_once(
        ["plain"],
        "--http-address=127.0.0.1",
        "--grpc-address=127.0.0.1",
        "--metrics-address=127.0.0.1",
    )
    assert server.get("/v2").status == 200
    assert server.grpc_client().is_server_live()
    assert "nv_inference_count" in server.metrics_text()


def test_unknown_option_ends_the_start(launch_once):
    with pytest.raises(StartError) as error:
        launch_once([], "--no-such-option=1")
    assert error.value.returncode not in (0, None)


def test_wrong_value_of_an_option_ends_the_start(launch_once):
    with pytest.raises(StartError):
        launch_once([], "--model-control-mode=sometimes")


def test_missing_repository_ends_the_start(launch_once):
    with pytest.raises(StartError):
        launch_once([], "--model-repository=/no/such/folder")


def test_port_in_use_ends_the_start(launch_once):
    server = launch_once([])
    with pytest.raises(StartError):
        launch_once([], f"--http-port={server.http_port}")


def test_two_repositories_are_read(launch_once, tmp_path):
    from conformance.model import Model

    Model("add_sub").write(tmp_path)
    server = launch_once(["plain"], f"--model-repository={tmp_path}")
    assert server.ready("plain") and server.ready("add_sub")


def test_complete_config_loads_when_completion_is_disabled(launch_once):
    server = launch_once(["plain"], "--disable-auto-complete-config")
    assert server.get("/v2/models/plain/config").json["max_batch_size"] == 0


def test_protocols_may_be_restricted_to_a_header(launch_once):
    server = launch_once(
        ["plain"],
        "--http-restricted-api=model-repository:key=secret",
        "--grpc-restricted-protocol=model-repository:key=secret",
    )
    assert server.post("/v2/repository/index").status == 403
    assert server.post("/v2/repository/index", headers={"key": "secret"}).status == 200
    assert server.post("/v2/repository/index", headers={"key": "wrong"}).status == 403
    assert data_of(server.infer("plain", BODY)) == [2]
    client = server.grpc_client()
    with pytest.raises(InferenceServerException):
        client.get_model_repository_index()
    assert client.get_model_repository_index(headers={"triton-grpc-protocol-key": "secret"})


def test_headers_may_be_passed_on_to_the_model(launch_once):
    import json

    import numpy as np
    from conformance.protocol import grpc_input

    server = launch_once(
        ["params_echo"],
        "--http-header-forward-pattern=my_.*",
        "--grpc-header-forward-pattern=my_.*",
    )
    response = server.infer(
        "params_echo",
        {"inputs": [tensor("INPUT0", [1], [1, 1], "INT32")]},
        headers={"my_header": "value", "other": "value"},
    )
    assert json.loads(data_of(response)[0])["parameters"] == {"my_header": "value"}
    result = server.grpc_client().infer(
        "params_echo",
        [grpc_input("INPUT0", np.array([[1]], np.int32))],
        headers={"my_header": "value"},
    )
    assert json.loads(result.as_numpy("OUTPUT0")[0][0])["parameters"] == {"my_header": "value"}


def test_log_can_go_to_a_file(launch_once, tmp_path):
    file = tmp_path / "server.log"
    server = launch_once(["plain"], f"--log-file={file}")
    assert server.get("/v2/logging").json["log_file"] == str(file)
    assert wait_until(lambda: file.exists() and "plain" in file.read_text())


def test_grpc_keeps_a_connection_alive(launch_once):
    server = launch_once([], "--grpc-keepalive-time=1000")
    client = tritonclient.grpc.InferenceServerClient(
        server.grpc_address,
        keepalive_options=tritonclient.grpc.KeepAliveOptions(keepalive_time_ms=2000),
    )
    assert client.is_server_live()
