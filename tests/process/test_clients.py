"""The clients that people have, unmodified, against a real server."""

import asyncio
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.grpc.aio
import tritonclient.http
import tritonclient.http.aio
from conformance.catalog import identity

ROW = np.array([[1, 2, 3, 4]], np.float32)


@pytest.fixture(scope="module")
def server(launch_for_all):
    return launch_for_all(
        ["add_sub", "repeat", identity("identity_fp32", "FP32", extra="dynamic_batching { }")]
    )


def inputs(module):
    found = []
    for name in ("INPUT0", "INPUT1"):
        entry = module.InferInput(name, [1, 4], "FP32")
        entry.set_data_from_numpy(ROW)
        found.append(entry)
    return found


def test_tritonclient_http(server):
    with tritonclient.http.InferenceServerClient(server.http_address) as client:
        assert client.is_server_live() and client.is_server_ready()
        assert client.is_model_ready("add_sub")
        assert client.get_server_metadata()["name"] == "triton"
        assert client.get_model_metadata("add_sub")["inputs"][0]["shape"] == [-1, 4]
        assert client.get_model_config("add_sub")["max_batch_size"] == 8
        assert {m["name"] for m in client.get_model_repository_index()} >= {"add_sub", "repeat"}
        result = client.infer("add_sub", inputs(tritonclient.http))
        assert np.array_equal(result.as_numpy("OUTPUT0"), ROW * 2)
        assert client.get_inference_statistics("add_sub")["model_stats"][0]["inference_count"] > 0


def test_tritonclient_http_aio(server):
    async def run():
        async with tritonclient.http.aio.InferenceServerClient(server.http_address) as client:
            assert await client.is_server_ready()
            return await client.infer("add_sub", inputs(tritonclient.http))

    assert np.array_equal(asyncio.run(run()).as_numpy("OUTPUT0"), ROW * 2)


def test_tritonclient_grpc(server):
    with tritonclient.grpc.InferenceServerClient(server.grpc_address) as client:
        assert client.is_server_live() and client.is_server_ready()
        assert client.is_model_ready("add_sub")
        assert client.get_server_metadata().name == "triton"
        assert list(client.get_model_metadata("add_sub").inputs[0].shape) == [-1, 4]
        assert client.get_model_config("add_sub").config.max_batch_size == 8
        assert {m.name for m in client.get_model_repository_index().models} >= {"add_sub"}
        result = client.infer("add_sub", inputs(tritonclient.grpc))
        assert np.array_equal(result.as_numpy("OUTPUT0"), ROW * 2)
        assert client.get_inference_statistics("add_sub").model_stats[0].inference_count > 0


def test_tritonclient_grpc_aio(server):
    async def run():
        async with tritonclient.grpc.aio.InferenceServerClient(server.grpc_address) as client:
            assert await client.is_server_ready()
            return await client.infer("add_sub", inputs(tritonclient.grpc))

    assert np.array_equal(asyncio.run(run()).as_numpy("OUTPUT0"), ROW * 2)


def test_tritonclient_grpc_aio_streams(server):
    async def requests():
        entry = tritonclient.grpc.InferInput("IN", [3], "INT32")
        entry.set_data_from_numpy(np.array([4, 5, 6], np.int32))
        yield {"model_name": "repeat", "inputs": [entry]}

    async def run():
        async with tritonclient.grpc.aio.InferenceServerClient(server.grpc_address) as client:
            stream = client.stream_infer(requests())
            return [int(result.as_numpy("OUT")[0]) async for result, error in stream if not error]

    assert asyncio.run(run()) == [4, 5, 6]


def test_own_messages_and_those_of_tritonclient_live_in_one_process():
    """Both define the same protobuf names; either may come first."""
    for first, second in (
        ("frontends.grpc", "tritonclient.grpc"),
        ("tritonclient.grpc", "frontends.grpc"),
    ):
        subprocess.run([sys.executable, "-c", f"import {first}, {second}"], check=True)


def perf_analyzer():
    """The program, and the environment that it needs; None if it cannot run here."""
    program = os.environ.get("PERF_ANALYZER") or shutil.which("perf_analyzer")
    if program is None:
        return None
    environment = dict(os.environ)
    for library in pathlib.Path(program).parent.parent.glob("**/libcudart.so.12"):
        environment["LD_LIBRARY_PATH"] = str(library.parent)
    try:
        found = subprocess.run(
            [program, "--version"], env=environment, capture_output=True, timeout=20
        )
    except OSError:
        return None
    text = found.stdout + found.stderr
    return (program, environment) if b"Perf Analyzer Version" in text else None


@pytest.mark.parametrize(
    "protocol,options", [("http", []), ("grpc", []), ("grpc", ["--streaming", "--async"])]
)
def test_perf_analyzer(server, protocol, options, tmp_path):
    if (found := perf_analyzer()) is None:
        pytest.skip("no perf_analyzer that runs here; set PERF_ANALYZER to one")
    program, environment = found
    report = tmp_path / "report.csv"

    ended = subprocess.run(
        [
            program, "-m", "identity_fp32", "-u",
            server.http_address if protocol == "http" else server.grpc_address,
            "-i", protocol, "--shape", "INPUT0:16", "--concurrency-range", "4",
            "--request-count", "400", "-f", str(report), *options,
        ],
        env=environment, capture_output=True, text=True, timeout=120,
    )  # fmt: skip

    assert ended.returncode == 0, ended.stdout + ended.stderr
    throughput = float(report.read_text().splitlines()[1].split(",")[1])
    assert throughput > 0
