"""Models that run with another Python, or other packages, than the server."""

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from backend_python import backend

from core import config as configuration
from core.errors import CoreError

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
VERSIONS = [v for v in ("3.9", "3.10", "3.11", "3.12", "3.13", "3.14", "3.15") if v != HERE]

TWICE = """
    async def execute(self, requests):
        return [pb_utils.InferenceResponse([
            pb_utils.Tensor("y", pb_utils.get_input_tensor_by_name(r, "x").as_numpy() * 2)
        ]) for r in requests]
"""


async def test_a_model_runs_in_the_environment_that_it_names(told, same, numpy_only, runs_in):
    where = await told(runs_in(same))

    assert where["prefix"] == str(same)
    assert where["numpy"].startswith(str(numpy_only))
    assert where["reader"] == "backend_python.plain"


async def test_it_sees_none_of_the_servers_packages(serve, same, folder, runs_in):
    source = """
    def execute(self, requests):
        import importlib
        there = []
        for name in ("core", "orjson", "pluggy", "aiohttp", "pytest", "hypothesis", "backend_onnx"):
            try:
                importlib.import_module(name)
                there.append(name)
            except ImportError:
                pass
        path = [each for each in sys.path if not each.startswith((sys.prefix, sys.base_prefix))]
        return [pb_utils.InferenceResponse([
            pb_utils.Tensor("y", np.array([json.dumps([there, path])], np.object_))
        ]) for _ in requests]
"""
    model = await serve(source, runs_in(same), datatype="BYTES")

    answer = await model.ask({"x": np.array([b"x"], object)})
    there, path = json.loads(answer.output("y").array[0])
    assert there == []
    assert path[1:] == [str(folder / "1"), str(folder)]  # the first is that of numpy


async def test_variables_that_lead_to_the_servers_packages_stay(
    told, same, monkeypatch, tmp_path, runs_in
):
    site = str(Path(np.__file__).parents[1])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([site, str(tmp_path / "mine")]))
    monkeypatch.setenv("PYTHONHOME", sys.base_prefix)
    monkeypatch.setenv("MINE", "kept")

    where = await told(runs_in(same))

    environment = where["environment"]
    assert environment["PYTHONPATH"] == str(tmp_path / "mine")
    assert "PYTHONHOME" not in environment
    assert environment["MINE"] == "kept"
    assert environment["PATH"].split(os.pathsep)[0] == str(same / "bin")


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_model_runs_in_an_interpreter_of_any_version(serve, of_version, version, runs_in):
    environment = of_version(version)
    source = """
    async def execute(self, requests):
        version = float(".".join(map(str, sys.version_info[:2])))
        return [pb_utils.InferenceResponse([
            pb_utils.Tensor("y", r.inputs()[0].as_numpy() * np.float32(version))
        ]) for r in requests]
"""
    model = await serve(source, runs_in(environment))

    for size in (3, 1 << 18):  # in the message, and in the arena
        x = np.arange(size, dtype=np.float32)
        answer = await model.ask({"x": x})
        assert np.array_equal(answer.output("y").array, x * np.float32(version))


@pytest.fixture(scope="session")
def of_version(tmp_path_factory, python_of, numpy_of, venv):
    """of_version("3.9") is an environment of that Python with numpy; else the test is skipped."""
    return lambda version: venv(
        tmp_path_factory.mktemp("version") / version, python_of(version), [numpy_of(version)]
    )


async def test_children_of_one_environment_come_from_one_template(
    serve, same, templates, children, runs_in
):
    first = await serve(TWICE, runs_in(same) + " instance_group { count: 2 }")
    second = await serve(TWICE, runs_in(same), name="n")

    assert len(templates()) == 1
    assert len(children()) == 3

    await first.chain.close()
    first.model.unload()
    assert len(templates()) == 1

    await second.chain.close()
    second.model.unload()
    first.model.unload = second.model.unload = lambda: None
    assert templates() == []


async def test_a_child_that_dies_is_replaced_in_its_environment(serve, same, runs_in):
    source = """
    def execute(self, requests):
        if requests[0].inputs()[0].as_numpy()[0] < 0:
            os._exit(1)
        return [pb_utils.InferenceResponse([pb_utils.Tensor(
            "y", np.array([sys.prefix == os.environ["WANTED"]], np.float32))]) for _ in requests]
"""
    os.environ["WANTED"] = str(same)
    try:
        model = await serve(source, runs_in(same))
        with pytest.raises(CoreError, match="is not healthy"):
            await model.y(-1)
        assert await model.y(1) == [1]
    finally:
        del os.environ["WANTED"]


async def test_calls_streams_and_logs_work_in_an_environment(serve, same, caplog, runs_in):
    source = """
    def initialize(self, args):
        pb_utils.Logger.log_warn("from elsewhere")
        self.family = pb_utils.MetricFamily("elsewhere", "d", pb_utils.MetricFamily.COUNTER)
        self.metric = self.family.Metric({})

    def execute(self, requests):
        self.metric.increment(2)
        for request in requests:
            sender = request.get_response_sender()
            for i in range(3):
                sender.send(pb_utils.InferenceResponse(
                    [pb_utils.Tensor("y", np.array([i + self.metric.value()], np.float32))]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""
    model = await serve(source, runs_in(same), decoupled=True)

    found = []
    async for response in model.ask({"x": np.array([1], np.float32)}):
        if response.outputs:
            found.append(response.output("y").array[0])

    assert found == [2, 3, 4]
    assert "from elsewhere" in caplog.text


async def test_exceptions_have_the_same_text_as_in_the_servers_interpreter(serve, same, runs_in):
    model = await serve("    def execute(self, requests): raise ValueError('no')", runs_in(same))

    with pytest.raises(CoreError, match=r"ValueError: no\n\nAt:\n  .*model.py\(\d+\): execute\n$"):
        await model.y(1)


async def test_dlpack_and_bf16_work_in_an_environment(serve, same, runs_in):
    source = """
    def execute(self, requests):
        x = requests[0].inputs()[0]
        y = pb_utils.Tensor.from_dlpack("y", x.to_dlpack())
        return [pb_utils.InferenceResponse([y])]
"""
    model = await serve(source, runs_in(same))

    assert await model.y(1, 2) == [1, 2]


async def test_auto_complete_config_runs_in_the_environment(write, same, tmp_path, cache, runs_in):
    source = """
    @staticmethod
    def auto_complete_config(config):
        config.add_input({"name": os.path.basename(sys.prefix), "data_type": "TYPE_FP32", "dims": [1]})
        return config
"""
    version = write(tmp_path / "m", source)
    config = configuration.parse_text(f'name: "m" backend: "python" {runs_in(same)}', "test")

    backend.complete(config, version, backend)

    assert config.input[0].name == same.name


async def test_models_share_a_worker_with_those_of_their_environment(
    serve, same, runs_in, children
):
    pid = """
    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor(
            "y", np.array([os.getpid()], np.float32))]) for _ in requests]
"""
    models = [
        await serve(pid, more, mode="shared", name=name)
        for name, more in (("a", runs_in(same)), ("b", ""), ("c", runs_in(same)))
    ]

    a, b, c = [(await model.y(1))[0] for model in models]

    assert a == c != b
    assert len(children()) == 2
