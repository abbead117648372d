"""Sessions: how many instances share one, threads, accelerators, variables, ragged batches."""

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest
from backend_tensorflow import backend
from backend_tensorflow.conformance import save
from backend_tensorflow.framework import tf, v1
from backend_tensorflow.session import Session
from backend_tensorflow.session_options import session_options
from backend_tensorflow.settings import ServerSettings, settings_of

from core.backend import Device
from core.config import parse_text
from core.errors import CoreError

CPU = Device("CPU")


def config_of(text):
    return parse_text(f'name: "m" {text}', "config.pbtxt")


def parameter(name, value):
    return f"parameters {{ key: '{name}' value {{ string_value: '{value}' }} }}"


def counter(folder):
    """y = the number of requests to the session."""
    module = tf.Module()
    module.count = tf.Variable(0)
    module.function = tf.function(
        lambda x: {"y": module.count.assign_add(tf.size(x))},
        input_signature=[tf.TensorSpec([1], tf.int32)],
    )
    tf.saved_model.save(module, str(folder / "model.savedmodel"), signatures=module.function)


def options_of(text, server=None):
    config = config_of(text)
    return session_options(config, settings_of(config), server or ServerSettings(), CPU)


@pytest.mark.parametrize(("share", "sessions"), [("", 1), ("1", 4), ("2", 2), ("3", 2)])
def test_instances_share_sessions(serve, monkeypatch, share, sessions):
    opened = []
    make = backend.model._session
    monkeypatch.setattr(
        backend.model, "_session", lambda self, device: opened.append(1) or make(self, device)
    )
    more = parameter("MAX_SESSION_SHARE_COUNT", share) if share else ""
    model = serve(counter, f'backend: "tensorflow" instance_group {{ count: 4 }} {more}')

    assert len(opened) == sessions
    assert model(x=np.zeros(1, np.int32))["y"].tolist() == [1]


TOGETHER = """
import sys
import core

with core.Server(model_repository=sys.argv[1]) as server:
    print(*(name for name in "abcd" if server.ready(name)))
"""


def test_models_that_load_at_the_same_time_import_tensorflow_once(tmp_path):
    for name in "abcd":
        folder = tmp_path / name / "1"
        folder.mkdir(parents=True)
        counter(folder)

    done = subprocess.run(
        [sys.executable, "-c", TOGETHER, tmp_path], capture_output=True, text=True, check=False
    )

    assert done.stdout == "a b c d\n", done.stderr


def test_a_variable_lives_as_long_as_the_model(serve):
    model = serve(counter)
    x = np.zeros(1, np.int32)

    assert [model(x=x)["y"].tolist() for _ in range(3)] == [[1], [2], [3]]
    model.served.unload("m")
    model.served.load("m")
    assert model(x=x)["y"].tolist() == [1]


def test_functions_that_are_in_use_stay(monkeypatch):
    names = [f"y{i}:0" for i in range(6)]
    with v1.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [1], "x")
        for i in range(6):
            tf.add(x, float(i), name=f"y{i}")
    session = Session(graph, None)
    unlocked = []
    make = Session._function
    monkeypatch.setattr(
        Session,
        "_function",
        lambda self, *given: unlocked.append(not self._lock.locked()) or make(self, *given),
    )

    first = session.function(["x:0"], names)
    subsets = [each for size in (1, 2, 3) for each in itertools.combinations(names, size)]
    for subset in subsets[:40]:
        session.function(["x:0"], subset)
        assert session.function(["x:0"], names) is first

    assert [array.tolist() for array in first(np.ones(1, np.float32))] == [
        [1.0 + i] for i in range(6)
    ]
    assert unlocked == [True] * 41
    session.close()


def test_threads():
    found = options_of(
        parameter("TF_NUM_INTRA_THREADS", "3") + parameter("TF_NUM_INTER_THREADS", "2")
    )

    assert (found.intra_op_parallelism_threads, found.inter_op_parallelism_threads) == (3, 2)
    assert found.use_per_session_threads
    assert not options_of("").use_per_session_threads


def test_a_session_has_threads_of_its_own(serve):
    v1.Session(graph=tf.Graph()).close()  # the threads that all sessions share
    before = len(os.listdir("/proc/self/task"))

    serve(counter, f'backend: "tensorflow" {parameter("TF_NUM_INTER_THREADS", "13")}')

    assert len(os.listdir("/proc/self/task")) - before >= 13


def test_placement_and_memory():
    found = options_of("", ServerSettings(soft_placement=False, memory_fraction=0.25))

    assert not found.allow_soft_placement
    assert found.device_count["GPU"] == 0
    assert found.gpu_options.per_process_gpu_memory_fraction == 0.25
    assert options_of("").gpu_options.allow_growth


@pytest.mark.parametrize(("level", "jit"), [(0, "DEFAULT"), (1, "ON_1"), (2, "ON_2")])
def test_levels_of_optimization_above_0_are_those_of_xla(level, jit):
    options = options_of(f"optimization {{ graph {{ level: {level} }} }}")
    found = options.graph_options.optimizer_options

    assert found.GlobalJitLevel.Name(found.global_jit_level) == jit


def test_a_negative_level_leaves_the_graph(serve):
    config = 'backend: "tensorflow" optimization { graph { level: -1 } }'

    assert serve(counter, config)(x=np.zeros(1, np.int32))["y"].tolist() == [1]


def accelerator(name):
    return f'optimization {{ execution_accelerators {{ gpu_execution_accelerator {{ name: "{name}" }} }} }}'


def test_accelerators():
    options = options_of(accelerator("auto_mixed_precision")).graph_options.rewrite_options
    assert options.auto_mixed_precision == options.ON
    assert options_of(accelerator("gpu_io"))
    with pytest.raises(CoreError, match=r"TensorFlow has no TensorRT since its version 2.18"):
        options_of(accelerator("tensorrt"))
    with pytest.raises(CoreError, match="no accelerator 'fast' for TensorFlow; there are"):
        options_of(accelerator("fast"))


def test_bfloat16(serve):
    doubled = tf.TensorSpec([None, 2], tf.bfloat16)
    model = serve(lambda folder: save(folder, lambda x: {"y": x + x}, doubled))
    x = tf.constant([[1.5, -2]], tf.bfloat16).numpy()

    answer = model(x=x)["y"]

    assert answer.view(x.dtype).astype(float).tolist() == [[3, -4]]


def test_a_ragged_batch(serve):
    """Elements of several requests in one vector, with the ends of each."""

    def sums(elements, ends):
        rows = tf.RaggedTensor.from_row_splits(elements, tf.concat([[0], ends], 0))
        return {"sum": tf.reduce_sum(rows, axis=1)[:, None]}

    config = """backend: "tensorflow" max_batch_size: 8
    dynamic_batching { max_queue_delay_microseconds: 200000 }
    input { name: "elements" data_type: TYPE_FP32 dims: [ -1 ] allow_ragged_batch: true }
    output { name: "sum" data_type: TYPE_FP32 dims: [ 1 ] }
    batch_input { kind: BATCH_ACCUMULATED_ELEMENT_COUNT target_name: "ends" data_type: TYPE_INT32
                  source_input: "elements" }"""
    model = serve(
        lambda folder: save(
            folder, sums, tf.TensorSpec([None], tf.float32), tf.TensorSpec([None], tf.int32)
        ),
        config,
    )
    many = [{"elements": np.ones((1, n), np.float32)} for n in (3, 1, 5)]

    assert [each["sum"].tolist() for each in model.together(*many)] == [[[3]], [[1]], [[5]]]


def test_an_output_without_the_rows_of_the_batch_is_an_error(serve):
    def mixed(folder):
        save(
            folder,
            lambda x: {"y": tf.boolean_mask(x, x > 0)},
            tf.TensorSpec([None], tf.float32),
        )

    model = serve(mixed, 'backend: "tensorflow" max_batch_size: 4')

    with pytest.raises(
        CoreError, match=r"output 'y' has shape \[1\] for 2 rows: the model does not"
    ):
        model(x=np.array([[1], [-1]], np.float32))
