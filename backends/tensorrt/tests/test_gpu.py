"""Engines that the tests build on a GPU from ONNX. They are skipped without a GPU or a builder."""

import importlib
import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest
from backend_tensorrt.backend import backend
from backend_tensorrt.conformance import TestTensorRt as TestTensorRt
from core_testing.served import Served
from onnx import TensorProto, helper

import core
from core.devices.visible import gpus
from core.errors import CoreError
from core.request import DeviceOutput

X = np.arange(12, dtype=np.float32).reshape(4, 3)


def _why_not():
    if not gpus():
        return "no GPU"
    for name in ("tensorrt", "cupy"):
        if importlib.util.find_spec(name) is None:
            return f"{name} is not installed"
    return ""


pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(bool(_why_not()), reason=_why_not() or "there is one"),
]


def doubled(path, kind=TensorProto.FLOAT):
    """y = x + x, for 1 to 8 rows of 3."""
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "x"], ["y"])],
        "doubled",
        [helper.make_tensor_value_info("x", kind, ["n", 3])],
        [helper.make_tensor_value_info("y", kind, ["n", 3])],
    )
    return built(path, graph, {"x": ((1, 3), (4, 3), (8, 3))})


def nonzero(path):
    """y = the indices of x that are not zero."""
    graph = helper.make_graph(
        [helper.make_node("NonZero", ["x"], ["y"])],
        "nonzero",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])],
        [helper.make_tensor_value_info("y", TensorProto.INT64, [1, "m"])],
    )
    return built(path, graph, {"x": ((1,), (8,), (64,))})


def built(path, graph, shapes):
    """Build an engine of an ONNX graph with one optimization profile, and write it."""
    trt = importlib.import_module("tensorrt")
    logger = trt.Logger(trt.Logger.ERROR)
    builder = trt.Builder(logger)
    network = builder.create_network(0)
    parser = trt.OnnxParser(network, logger)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    assert parser.parse(model.SerializeToString())
    config = builder.create_builder_config()
    profile = builder.create_optimization_profile()
    for name, bounds in shapes.items():
        profile.set_shape(name, *bounds)
    config.add_optimization_profile(profile)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(builder.build_serialized_network(network, config)))
    return path


@pytest.fixture
def asking(tmp_path):
    """asking(build, config): serve the model m."""
    running = []

    def start(build, config=""):
        build(tmp_path / "models" / "m" / "1" / "model.plan")
        (tmp_path / "models" / "m" / "config.pbtxt").write_text(
            'platform: "tensorrt_plan" ' + config
        )
        served = Served(backend, tmp_path / "models")
        running.append(served.__enter__())
        served.load("m")
        return served

    yield start
    for served in running:
        served.__exit__(None, None, None)


@pytest.mark.parametrize(
    "config",
    [
        "",
        "optimization { cuda { graphs: true busy_wait_events: true output_copy_stream: true } }",
        "instance_group [ { kind: KIND_GPU count: 2 } ]",
        "optimization { eager_batching: true priority: PRIORITY_MAX }",
    ],
)
def test_many_batches(asking, config):
    served = asking(doubled, f"max_batch_size: 4 dynamic_batching {{ }} {config}")
    inputs = [X[: 1 + i % 4] + i for i in range(50)]

    found = served.together([{"x": each} for each in inputs], (), "m")

    assert all(np.array_equal(a["y"], 2 * x) for a, x in zip(found, inputs, strict=True))


def test_a_shape_that_depends_on_values(asking):
    served = asking(nonzero)

    for x in ([0, 1, 0, 2], [0, 0, 0], [3] * 60):
        found = served.ask({"x": np.array(x, np.float32)}, (), "m")["y"]
        assert found.tolist() == [np.flatnonzero(x).tolist()]


def test_arrays_of_cupy_go_in_and_come_out(tmp_path):
    cupy = importlib.import_module("cupy")
    doubled(tmp_path / "m" / "1" / "model.plan")
    x = cupy.asarray(X)
    cupy.cuda.get_current_stream().synchronize()

    with core.Server(model_repository=str(tmp_path)) as server:
        found = server.infer("m", {"x": x}, outputs=[DeviceOutput("y")])
        assert np.array_equal(cupy.from_dlpack(found["y"]).get(), 2 * X)
        assert np.array_equal(found.tensor("y").array, 2 * X)


@pytest.mark.parametrize("content", [b"", b"no engine at all", bytes(4096)])
def test_files_that_are_no_engines(asking, content):
    with pytest.raises(CoreError, match="cannot load"):
        asking(lambda path: (path.parent.mkdir(parents=True), path.write_bytes(content)))


def test_the_example_of_the_readme(monkeypatch, tmp_path):
    readme = (Path(__file__).parents[1] / "README.md").read_text()
    monkeypatch.chdir(tmp_path)

    for code in re.findall(r"```python\n(.*?)```", readme, re.DOTALL):
        exec(code, {})
