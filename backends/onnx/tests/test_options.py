"""Parameters of config.pbtxt reach ONNX Runtime; wrong ones are refused by name."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest
from backend_onnx.options import run_options, session_options, shares_threads

from core.config import parse_text
from core.errors import CoreError
from core.system.platform import PORTABLE


def parameters(**values):
    return "name: 'm' " + " ".join(
        f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}'
        for key, value in values.items()
    )


def options_of(text):
    return session_options(parse_text(text, "test"), Path(), global_threads=False)


def test_threads_mode_and_memory_are_set():
    options = options_of(
        parameters(
            intra_op_thread_count="3",
            inter_op_thread_count="2",
            execution_mode="1",
            enable_mem_arena="0",
            enable_mem_pattern="false",
        )
    )

    assert (options.intra_op_num_threads, options.inter_op_num_threads) == (3, 2)
    assert options.execution_mode == ort.ExecutionMode.ORT_PARALLEL
    assert (options.enable_cpu_mem_arena, options.enable_mem_pattern) == (False, False)


@pytest.mark.skipif(PORTABLE, reason="only Linux says which cores a process may use")
@pytest.mark.parametrize(
    ("allowed", "given", "expected"), [(3, "0", 3), (8, "0", 0), (3, "5", 5), (3, None, 3)]
)
def test_a_run_uses_the_cores_that_the_process_may_use(monkeypatch, allowed, given, expected):
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: set(range(allowed)), raising=False)
    text = parameters(intra_op_thread_count=given) if given else "name: 'm'"

    assert options_of(text).intra_op_num_threads == expected


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        ("", "ORT_ENABLE_ALL"),
        ("optimization { graph { level: -1 } }", "ORT_ENABLE_BASIC"),
        ("optimization { graph { level: 1 } }", "ORT_ENABLE_EXTENDED"),
        ("optimization { graph { level: 2 } }", "ORT_DISABLE_ALL"),
    ],
)
def test_the_graph_level_is_set(level, expected):
    assert options_of(f"name: 'm' {level}").graph_optimization_level.name == expected


def test_a_parameter_with_a_dot_is_a_session_entry():
    options = options_of(parameters(**{"session.intra_op.allow_spinning": "0"}))

    assert options.get_session_config_entry("session.intra_op.allow_spinning") == "0"


def test_arena_shrinkage_is_an_option_of_each_run():
    config = parse_text(parameters(**{"memory.enable_memory_arena_shrinkage": "cpu:0"}), "test")

    found = run_options(config)

    assert found.get_run_config_entry("memory.enable_memory_arena_shrinkage") == "cpu:0"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("intra_op_thread_count", "many"),
        ("inter_op_thread_count", "1.5"),
        ("intra_op_thread_count", ""),
        ("intra_op_thread_count", "1000000"),
        ("intra_op_thread_count", "9" * 5000),
        ("execution_mode", "2"),
        ("enable_mem_arena", "maybe"),
        ("share_session", "2"),
        ("memory.enable_memory_arena_shrinkage", "cpu"),
    ],
)
def test_an_invalid_value_is_refused_by_name(serve, identity, name, value):
    with pytest.raises(CoreError, match=f"model 'm': parameter '{name}' is '{value}'"):
        serve(identity(), parameters(**{name: value}))


def test_values_are_those_of_triton():
    options = options_of(
        parameters(
            intra_op_thread_count=" 2 ",
            inter_op_thread_count="-1",
            enable_mem_arena="Off",
            enable_mem_pattern="on",
        )
    )

    assert options.intra_op_num_threads == 2
    assert (options.enable_cpu_mem_arena, options.enable_mem_pattern) == (False, True)


def test_a_switch_of_the_backend_is_a_boolean():
    assert shares_threads({"enable-global-threadpool": "TRUE"})
    assert not shares_threads({"enable-global-threadpool": "off"})
    assert not shares_threads({})
    with pytest.raises(CoreError, match="onnxruntime,enable-global-threadpool=2: it must be 0 or"):
        shares_threads({"enable-global-threadpool": "2"})


def test_a_missing_operator_library_is_refused_by_name(serve, identity):
    with pytest.raises(CoreError, match=r"operator library 'ops.so'.*cannot be loaded"):
        serve(identity(), 'model_operations { op_library_filename: "ops.so" }')


def test_a_model_with_every_setting_answers(serve, identity):
    text = parameters(
        **{
            "intra_op_thread_count": "1",
            "execution_mode": "1",
            "enable_mem_arena": "0",
            "memory.enable_memory_arena_shrinkage": "",
            "session.set_denormal_as_zero": "1",
        }
    )
    x = np.ones((2, 3), np.float32)

    assert serve(identity(), text)(x=x)["y"].tolist() == x.tolist()


@pytest.mark.parametrize(("value", "sessions"), [("true", 1), ("false", 3)])
def test_instances_of_a_device_share_a_session_by_default(
    serve, identity, monkeypatch, value, sessions
):
    made = []
    real = ort.InferenceSession

    class Counted(real):
        def __init__(self, *args, **kwargs):
            made.append(self)
            super().__init__(*args, **kwargs)

    monkeypatch.setattr(ort, "InferenceSession", Counted)
    whole = """
        input [ { name: "x" data_type: TYPE_FP32 dims: [ -1, 3 ] } ]
        output [ { name: "y" data_type: TYPE_FP32 dims: [ -1, 3 ] } ]
        instance_group [ { kind: KIND_CPU count: 3 } ]
    """

    serve(identity(), parameters(share_session=value) + whole)

    assert len(made) == sessions


def test_a_process_may_have_one_pool_of_threads(tmp_path):
    """Use a separate process: ONNX Runtime cannot remove the pool again."""
    script = tmp_path / "serve.py"
    script.write_text(
        """
import sys
import numpy as np, onnx
from onnx import TensorProto, helper
from pathlib import Path
from backend_onnx import backend
from core_testing.served import Served

folder = Path(sys.argv[1]) / "models" / "m" / "1"
folder.mkdir(parents=True)
value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 3])
graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "g", [value("x")], [value("y")])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.save(model, folder / "model.onnx")
settings = {"enable-global-threadpool": "1", "intra_op_thread_count": "2"}
with Served(backend, folder.parent.parent, backend_config={"onnxruntime": settings}) as served:
    for _ in range(2):
        served.load("m")
        print(served.ask({"x": np.ones((1, 3), np.float32)}, (), "m")["y"].tolist())
        served.unload("m")
"""
    )

    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)], capture_output=True, text=True, timeout=60
    )

    assert done.stdout == "[[-1.0, -1.0, -1.0]]\n" * 2, done.stderr
