"""Log entries caused by clients: they forge no line, and choose no file."""

import io
import json
import logging

import grpc
import pytest
import tritonclient.grpc.service_pb2 as pb

from core.options import Options
from core.telemetry import log
from frontends.shared.context import context_of

FORGED = 'x\r\nE0101 00:00:00.000000 1 server.cc:1] "all is lost"\x1b[2J\u2028\x7f'


@pytest.fixture
def lines():
    """Yield a function that returns the log's text at the highest level."""
    stream = io.StringIO()
    log.configure(Options.defaults(log_verbose=1), stream)
    yield lambda: stream.getvalue()
    log.configure(Options.defaults())
    (handler,) = log._handlers
    logging.getLogger().removeHandler(handler)
    log._handlers = ()


def test_a_name_cannot_forge_a_line_of_the_log(server, lines, document, message):
    """CVE-2024-0095."""
    server.infer(document(1.0, id=FORGED), "nothing")
    wanted = document(1.0, id=FORGED)
    wanted["inputs"][0]["name"] = FORGED
    server.infer(wanted)
    server.refused("ModelInfer", message(1.0, model=FORGED, id=FORGED))
    server.refused("RepositoryModelLoad", pb.RepositoryModelLoadRequest(model_name=FORGED))

    text = lines()

    assert "all is lost" in text
    assert not any(line.startswith("E0101") for line in text.splitlines())
    assert all(character == "\n" or character.isprintable() for character in text)


def test_the_file_of_the_log_cannot_be_chosen_by_a_client(server, tmp_path):
    """CVE-2024-0087: arbitrary files were written."""
    path = tmp_path / "chosen"
    request = pb.LogSettingsRequest()
    request.settings["log_file"].string_param = str(path)

    answer = server.ask("POST", "/v2/logging", {"log_file": str(path), "log_info": False})

    assert (answer.status, "can not be updated" in answer.text) == (501, True)
    assert json.loads(server.ask("GET", "/v2/logging").body)["log_info"] is True
    assert server.refused("LogSettings", request).code() is grpc.StatusCode.UNIMPLEMENTED
    assert not path.exists()


def test_the_file_of_traces_cannot_be_chosen_by_a_client(server, tmp_path):
    """CVE-2024-0100: files were overwritten."""
    path = tmp_path / "chosen"
    request = pb.TraceSettingRequest()
    request.settings["trace_file"].value.append(str(path))

    for where in ("/v2/trace/setting", "/v2/models/echo/trace/setting"):
        answer = server.ask("POST", where, {"trace_file": str(path), "trace_level": ["TIMESTAMPS"]})
        assert 400 <= answer.status < 502

    assert server.refused("TraceSetting", request).code() is not grpc.StatusCode.INTERNAL
    assert not path.exists()


def test_the_access_log_cannot_be_forged(serve, tmp_path, document, message):
    path = tmp_path / "access.log"
    served = serve(access_log=str(path))
    served.infer(document(1.0, id=FORGED))
    served.refused("ModelInfer", message(1.0, model=FORGED, id=FORGED))
    served.ask("GET", "/v2/models/" + "x%0aE0101")
    served.call(context_of(served.server).access_log.close)

    lines = path.read_bytes().split(b"\n")

    assert lines.pop() == b""
    assert [json.loads(line)["status"] for line in lines] == [200, 5, 404]
    assert all(0x20 <= byte < 0x7F for line in lines for byte in line)
    assert json.loads(lines[0])["id"] == FORGED
