"""Trace and log settings."""

import json

import numpy as np
import pytest
from conformance.protocol import grpc_input, http_input, refused, tensor, wait_until
from tritonclient.utils import InferenceServerException

DEFAULTS = {
    "trace_level": ["OFF"],
    "trace_rate": "1000",
    "trace_count": "-1",
    "log_frequency": "0",
    "trace_file": "",
    "trace_mode": "triton",
}


@pytest.fixture(scope="module")
def server(launch):
    return launch(["plain", "add_sub", "utils_probe"])


def trace(server, model=None, **settings):
    path = f"/v2/models/{model}/trace/setting" if model else "/v2/trace/setting"
    return server.post(path, settings) if settings else server.get(path)


def infer(server):
    assert server.infer("plain", {"inputs": [tensor("INPUT0", [1])]}).status == 200


def test_trace_settings_have_defaults(server):
    found = trace(server).json
    assert {key: found[key] for key in DEFAULTS} == DEFAULTS


def test_trace_settings_of_a_model_follow_the_server(server):
    found = trace(server, "plain").json
    assert {key: found[key] for key in DEFAULTS} == DEFAULTS


def test_trace_settings_of_an_unknown_model_are_refused(server):
    refused(trace(server, "absent"))


def test_changed_trace_settings_come_back(server):
    response = trace(server, trace_rate="7", trace_count="9")
    assert response.json["trace_rate"] == "7"
    assert response.json["trace_count"] == "9"
    assert trace(server).json["trace_rate"] == "7"
    assert trace(server, "plain").json["trace_rate"] == "7"
    trace(server, trace_rate="1000", trace_count="-1")


def test_model_may_have_settings_of_its_own(server):
    trace(server, "add_sub", trace_rate="3")
    assert trace(server, "add_sub").json["trace_rate"] == "3"
    assert trace(server, "plain").json["trace_rate"] == "1000"
    trace(server, "add_sub", trace_rate=None)


def test_null_clears_a_setting_of_a_model(server):
    trace(server, "add_sub", trace_rate="3")
    assert (
        server.post("/v2/models/add_sub/trace/setting", b'{"trace_rate":null}').json["trace_rate"]
        == "1000"
    )


@pytest.mark.parametrize(
    "settings", [{"trace_rate": "many"}, {"trace_count": "-5x"}, {"trace_rate": {}}]
)
def test_wrong_trace_setting_is_refused(server, settings):
    refused(trace(server, **settings))
    assert trace(server).json["trace_rate"] == "1000"


@pytest.mark.parametrize("settings", [{"trace_level": ["NOTHING"]}, {"unknown": "1"}])
def test_unknown_trace_setting_changes_nothing(server, settings):
    trace(server, **settings)
    found = trace(server).json
    assert {key: found[key] for key in DEFAULTS} == DEFAULTS


def test_grpc_trace_settings_match_http(server):
    found = server.grpc_client().get_trace_settings()
    assert list(found.settings["trace_level"].value) == ["OFF"]
    assert list(found.settings["trace_rate"].value) == ["1000"]


def test_grpc_changes_trace_settings(server):
    client = server.grpc_client()
    client.update_trace_settings(settings={"trace_rate": "11"})
    assert trace(server).json["trace_rate"] == "11"
    client.update_trace_settings(settings={"trace_rate": None})
    assert trace(server).json["trace_rate"] == "1000"


def test_http_client_reads_and_changes_trace_settings(server):
    client = server.http_client()
    assert client.update_trace_settings("plain", {"trace_rate": "5"})["trace_rate"] == "5"
    assert client.update_trace_settings("plain", {"trace_rate": None})["trace_rate"] == "1000"
    assert client.get_trace_settings()["trace_level"] == ["OFF"]


def test_traces_are_written_with_their_timestamps(launch_once, tmp_path):
    file = tmp_path / "trace.json"
    server = launch_once(
        ["plain"],
        "--trace-config=level=TIMESTAMPS",
        "--trace-config=rate=1",
        f"--trace-config=triton,file={file}",
    )
    assert trace(server).json["trace_level"] == ["TIMESTAMPS"]
    for _ in range(3):
        infer(server)
    server.process.terminate()
    server.process.wait(30)
    entries = json.loads(file.read_text())
    requests = {entry["id"] for entry in entries if entry.get("model_name") == "plain"}
    assert len(requests) == 3
    stamps = {stamp["name"] for entry in entries for stamp in entry.get("timestamps", [])}
    assert {"REQUEST_START", "QUEUE_START", "COMPUTE_START", "COMPUTE_END", "REQUEST_END"} <= stamps


LOG_DEFAULTS = {
    "log_info": True,
    "log_warning": True,
    "log_error": True,
    "log_verbose_level": 0,
    "log_format": "default",
}


def test_log_settings_have_defaults(server):
    found = server.get("/v2/logging").json
    assert {key: found[key] for key in LOG_DEFAULTS} == LOG_DEFAULTS


def test_changed_log_settings_come_back(server):
    found = server.post("/v2/logging", {"log_info": False, "log_verbose_level": 2}).json
    assert found["log_info"] is False
    assert found["log_verbose_level"] == 2
    assert server.get("/v2/logging").json["log_info"] is False
    found = server.post("/v2/logging", {"log_info": True, "log_verbose_level": 0}).json
    assert {key: found[key] for key in LOG_DEFAULTS} == LOG_DEFAULTS


def test_log_level_decides_what_is_logged(server):
    def log_line():
        server.http_client().infer(
            "utils_probe", [http_input("WHAT", np.array([b"logger"], np.object_), "BYTES")]
        )
        return server.log_text().count("a line of the model")

    server.post("/v2/logging", {"log_info": False, "log_warning": False, "log_error": False})
    before = server.log_text().count("a line of the model")
    assert log_line() == before
    server.post("/v2/logging", {"log_info": True, "log_warning": True, "log_error": True})
    log_line()
    assert wait_until(lambda: server.log_text().count("a line of the model") > before)


@pytest.mark.parametrize(
    "settings", [{"log_info": "yes"}, {"log_verbose_level": "high"}, {"log_format": "nothing"}]
)
def test_wrong_log_setting_is_refused(server, settings):
    refused(server.post("/v2/logging", settings))


def test_log_format_can_be_iso8601(server):
    assert server.post("/v2/logging", {"log_format": "ISO8601"}).json["log_format"] == "ISO8601"
    server.post("/v2/logging", {"log_format": "default"})


def test_grpc_log_settings(server):
    client = server.grpc_client()
    assert client.get_log_settings().settings["log_info"].bool_param is True
    found = client.update_log_settings({"log_verbose_level": 1})
    assert found.settings["log_verbose_level"].uint32_param == 1
    client.update_log_settings({"log_verbose_level": 0})
    with pytest.raises(InferenceServerException):
        client.update_log_settings({"log_format": "nothing"})


def test_log_settings_of_the_command_line(launch_once):
    server = launch_once([], "--log-verbose=1", "--log-info=false")
    found = server.get("/v2/logging").json
    assert found["log_verbose_level"] == 1
    assert found["log_info"] is False


def test_server_answers_while_settings_change(server):
    for number in range(20):
        server.post("/v2/logging", {"log_verbose_level": number % 2})
        infer(server)
        server.grpc_client().infer("plain", [grpc_input("INPUT0", np.array([1], np.float32))])
    server.post("/v2/logging", {"log_verbose_level": 0})
