"""HTTP, gRPC and metrics at Unix domain sockets: real clients, permissions, and the socket files."""

import asyncio
import os
import socket
import stat
import subprocess
import tempfile

import aiohttp
import grpc
import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.grpc.aio

from core.errors import CoreError, Kind
from frontends.shared import inherited_sockets

from .conftest import ENGINES

REQUEST = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [2], "data": [1, 2]}]}


@pytest.fixture
def paths(tmp_path):
    return {
        "http_address": f"unix:{tmp_path}/http",
        "grpc_address": f"unix:{tmp_path}/grpc",
        "metrics_address": f"unix:{tmp_path}/metrics",
    }


def files(tmp_path):
    return sorted(each.name for each in tmp_path.iterdir())


@pytest.mark.parametrize("lane", ["auto", "aiohttp"])
def test_http_answers_at_a_path(serving, paths, tmp_path, lane):
    async def ask():
        connector = aiohttp.UnixConnector(f"{tmp_path}/http")
        async with aiohttp.ClientSession("http://localhost", connector=connector) as session:
            async with session.get("/v2/health/ready") as answer:
                assert answer.status == 200
            for _ in range(2):
                async with session.post("/v2/models/double/infer", json=REQUEST) as answer:
                    return (await answer.json())["outputs"][0]["data"]

    with serving(http_lane=lane, **paths):
        assert asyncio.run(ask()) == [2, 4]


def test_curl_reads_http_and_metrics(serving, paths, tmp_path):
    def curl(name, path):
        found = subprocess.run(
            ["curl", "-sS", "--unix-socket", f"{tmp_path}/{name}", f"http://localhost{path}"],
            capture_output=True,
            text=True,
            timeout=30,
        )
        return found.stdout

    with serving(allow_metrics=True, **paths):
        assert '"name":"double"' in curl("http", "/v2/models/double")
        assert "nv_inference_count" in curl("metrics", "/metrics")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("form", ["unix:{}/grpc", "unix://{}/grpc"])
def test_a_client_of_grpc_takes_the_path_as_its_url(serving, paths, tmp_path, engine, form):
    tensor = tritonclient.grpc.InferInput("x", [2], "FP32")
    tensor.set_data_from_numpy(np.array([1, 2], np.float32))

    async def ask():
        async with tritonclient.grpc.aio.InferenceServerClient(form.format(tmp_path)) as client:
            return (await client.infer("double", [tensor])).as_numpy("y").tolist()

    with serving(grpc_engine=engine, **{**paths, "grpc_address": form.format(tmp_path)}):
        with tritonclient.grpc.InferenceServerClient(form.format(tmp_path)) as client:
            assert client.infer("double", [tensor]).as_numpy("y").tolist() == [2, 4]
        assert asyncio.run(ask()) == [2, 4]


@pytest.mark.parametrize("engine", ENGINES)
def test_files_have_the_permissions_of_the_option_and_go_with_the_server(
    serving, paths, tmp_path, engine
):
    more = {"allow_metrics": True, "shared_memory_socket": f"{tmp_path}/memory"}
    for mode in ("0600", "0660"):
        with serving(grpc_engine=engine, unix_socket_mode=mode, **paths, **more):
            assert files(tmp_path) == ["grpc", "http", "memory", "metrics"]
            for name in files(tmp_path):
                found = (tmp_path / name).stat().st_mode
                assert stat.S_ISSOCK(found) and stat.S_IMODE(found) == int(mode, 8), name

        assert files(tmp_path) == []


@pytest.mark.parametrize("engine", ENGINES)
def test_the_socket_of_a_dead_server_is_replaced(serving, paths, tmp_path, engine):
    for name in ("http", "grpc"):
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(f"{tmp_path}/{name}")

    with (
        serving(grpc_engine=engine, **paths),
        grpc.insecure_channel(paths["grpc_address"]) as channel,
    ):
        grpc.channel_ready_future(channel).result(30)


def refused(serving, **options):
    with pytest.raises(CoreError) as caught, serving(**options):
        pass
    assert caught.value.kind is Kind.UNAVAILABLE
    return caught.value.message


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["http", "grpc", "metrics", "memory"])
def test_a_socket_with_a_listener_is_not_removed(serving, tmp_path, engine, name):
    option = "shared_memory_socket" if name == "memory" else f"{name}_address"
    kind = socket.SOCK_SEQPACKET if name == "memory" else socket.SOCK_STREAM
    with socket.socket(socket.AF_UNIX, kind) as other:
        other.bind(f"{tmp_path}/s")
        other.listen()

        text = refused(
            serving, **{option: f"unix:{tmp_path}/s"}, grpc_engine=engine, allow_metrics=True
        )

        assert text == f"Socket 'unix:{tmp_path}/s' already in use"
        assert files(tmp_path) == ["s"]


def test_grpcio_cannot_share_the_socket_of_several_workers(serving, tmp_path, monkeypatch):
    address = f"unix:{tmp_path}/s"
    monkeypatch.setitem(inherited_sockets._files, address, [0])

    text = refused(serving, grpc_address=address, grpc_engine="grpcio")

    assert "grpcio cannot share" in text and "use --grpc-engine=native, or one worker" in text


def test_a_file_that_is_no_socket_is_not_removed(serving, tmp_path):
    (tmp_path / "s").write_text("mine")

    text = refused(serving, http_address=f"unix:{tmp_path}/s")

    assert text == f"cannot listen at 'unix:{tmp_path}/s': there is a file that is no socket"
    assert (tmp_path / "s").read_text() == "mine"


def test_a_missing_folder_and_a_too_long_path_are_errors(serving, tmp_path):
    assert refused(serving, http_address=f"unix:{tmp_path}/no/s") == (
        f"cannot listen at 'unix:{tmp_path}/no/s': No such file or directory"
    )
    assert "path too long" in refused(serving, http_address=f"unix:{tmp_path}/{'s' * 200}")


def test_a_later_file_at_the_path_is_not_removed(serving, tmp_path):
    with serving(http_address=f"unix:{tmp_path}/s"):
        os.unlink(tmp_path / "s")
        (tmp_path / "s").write_text("mine")

    assert (tmp_path / "s").read_text() == "mine"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
@pytest.mark.parametrize(("mode", "status"), [("0600", 7), ("0666", 0)])  # curl's 7: no connection
def test_permissions_of_the_file_decide_who_may_connect(serving, mode, status):
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        with serving(http_address=f"unix:{folder}/s", unix_socket_mode=mode):
            found = subprocess.run(
                ["curl", "-sS", "--unix-socket", f"{folder}/s", "http://localhost/v2/health/live"],
                capture_output=True,
                timeout=30,
                user=65534,
            )

    assert found.returncode == status
