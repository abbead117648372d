"""Names that become paths: none leaves its folder, and none is read by a shell."""

import base64

import grpc
import pytest
import tritonclient.grpc.service_pb2 as pb

CONTENT = base64.b64encode(b"owned").decode()
CONFIG = '{"backend": "test"}'
TRAVERSALS = [
    "../x",
    "/tmp/x",
    "1/../../x",
    "..",
    "1/../../../../tmp/x",
    "",
    "1/\0x",
    "./../x",
    "1/",
]
NAMES = ["..", "../echo", "a/../../b", "/etc", "a\0b", "", " ", "a..b"]


def files_of(folder):
    return sorted(str(each) for each in folder.rglob("*"))


@pytest.mark.parametrize("path", TRAVERSALS)
def test_a_load_override_cannot_leave_its_folder(server, tmp_path, path):
    """CVE-2023-31036, CVE-2026-24208, CVE-2026-24209."""
    before = files_of(server.repository.parent)
    request = pb.RepositoryModelLoadRequest(model_name="new")
    request.parameters["config"].string_param = CONFIG
    request.parameters[f"file:{path}"].bytes_param = b"owned"

    answer = server.ask(
        "POST",
        "/v2/repository/models/new/load",
        {"parameters": {"config": CONFIG, f"file:{path}": CONTENT}},
    )

    assert (answer.status, "must stay within model directory" in answer.text) == (400, True)
    error = server.refused("RepositoryModelLoad", request)
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert files_of(server.repository.parent) == before


@pytest.mark.parametrize("name", NAMES)
def test_a_model_to_load_is_a_folder_of_the_repository(server, name):
    error = server.refused("RepositoryModelLoad", pb.RepositoryModelLoadRequest(model_name=name))

    assert error.code() in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND)


@pytest.mark.parametrize(
    "name", ["..", "%2e%2e", "..%2f..%2fetc", "a%00", "%2Fetc%2Fpasswd", "a" * 4000]
)
def test_a_name_in_a_path_is_no_path(server, name):
    before = server.server.manager.index()

    answer = server.ask("POST", f"/v2/repository/models/{name}/load", {})
    server.ask("POST", f"/v2/repository/models/{name}/unload", {})

    assert answer.status in (400, 404, 500)
    assert len(answer.body) < 1000
    assert [each for each in server.server.manager.index() if each.get("state") == "READY"] == [
        each for each in before if each.get("state") == "READY"
    ]


@pytest.mark.parametrize(
    "command", ["$(touch owned)", "`touch owned`", ";touch owned;", "|touch owned"]
)
def test_no_shell_reads_the_name_of_a_model(server, tmp_path, monkeypatch, command):
    """CVE-2025-23316: the name in the model control API reached a shell."""
    monkeypatch.chdir(tmp_path)

    server.refused("RepositoryModelLoad", pb.RepositoryModelLoadRequest(model_name=command))
    request = pb.RepositoryModelLoadRequest(model_name=command)
    request.parameters["config"].string_param = CONFIG
    request.parameters["file:1/x"].bytes_param = b""
    try:
        server.stub.RepositoryModelLoad(request, timeout=30)
    except grpc.RpcError:
        pass  # whether the file system allows such a name is not tested here
    else:
        server.stub.RepositoryModelUnload(
            pb.RepositoryModelUnloadRequest(model_name=command), timeout=30
        )

    assert not list(tmp_path.rglob("owned"))


@pytest.mark.parametrize("label", ["../../secret", "/etc/passwd", "../echo/config.pbtxt"])
def test_a_label_file_lies_in_its_model(server, label):
    config = (
        '{"backend": "test", "output": [{"name": "y", "data_type": "TYPE_FP32", "dims": [1], '
        f'"label_filename": "{label}"}}]}}'
    )
    answer = server.ask(
        "POST",
        "/v2/repository/models/new/load",
        {"parameters": {"config": config, "file:1/x": CONTENT}},
    )

    assert answer.status == 400
    assert "label" in answer.text


@pytest.mark.parametrize("url", ["http://169.254.169.254/x", "s3://bucket/x", "file:///etc/passwd"])
def test_a_client_cannot_make_the_server_fetch_urls(server, url):
    """CVE-2023-43654: a server of models fetched what any client named."""
    error = server.refused("RepositoryModelLoad", pb.RepositoryModelLoadRequest(model_name=url))

    assert error.code() in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND)


def test_clients_change_models_only_if_the_mode_allows_it(serve):
    """CVE-2023-48022 and its kin: management that is open by default."""
    served = serve()

    assert served.ask("POST", "/v2/repository/models/echo/unload", {}).status == 503
    assert served.ask("POST", "/v2/repository/models/echo/load", {}).status == 503
