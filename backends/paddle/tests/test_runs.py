"""Datatypes, shapes, instances, errors of requests."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from backend_paddle.conformance import save
from backend_paddle.framework import paddle

from core.errors import CoreError

ROW = ("float32", (None, 3))


def doubled(dtype="float32", shape=(None, 3), **more):
    return lambda folder: save(folder, lambda x: x + x, x=(dtype, shape), **more)


@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int8", "int32", "int64", "float16", "float32", "float64"]
)
def test_datatypes(serve, dtype):
    model = serve(
        lambda folder: save(folder, lambda x: x.reshape([-1, 4]), x=(dtype, (None, 2, 2)))
    )
    x = np.array([[[0, 1], [1, 1]]], dtype)

    answer = model(x=x)["fetch_name_0"]

    assert answer.dtype == x.dtype and answer.tolist() == [[0, 1, 1, 1]]


def test_a_row_without_dims_is_one_element(serve):
    model = serve(doubled(shape=(None,)))

    assert list(model.config.input[0].dims) == [1]
    assert model(x=np.array([[3], [4]], np.float32))["fetch_name_0"].tolist() == [[6], [8]]


def test_rows_without_dims_may_be_so_in_the_configuration(serve):
    text = """backend: "paddle" max_batch_size: 4
        input { name: "x" data_type: TYPE_FP32 dims: 1 reshape { } }
        output { name: "fetch_name_0" data_type: TYPE_FP32 dims: 1 reshape { } }"""
    model = serve(doubled(shape=(None,)), text)

    assert model(x=np.array([[3], [4]], np.float32))["fetch_name_0"].tolist() == [[6], [8]]


def test_a_tensor_without_dims_is_one_element(serve):
    model = serve(lambda folder: save(folder, lambda x: paddle.stack([x, x]), x=("float32", ())))

    assert model(x=np.array([3], np.float32))["fetch_name_0"].tolist() == [3, 3]


def test_fixed_shapes_need_no_batches(serve):
    model = serve(doubled(shape=(2, 3)))

    assert model.config.max_batch_size == 0
    assert model(x=np.ones((2, 3), np.float32))["fetch_name_0"].tolist() == [[2, 2, 2]] * 2


def test_a_request_that_fails_names_the_model_and_the_reason(serve):
    model = serve(
        lambda folder: save(folder, lambda x: x.reshape([-1, 2]), x=("float32", (None,))),
        'backend: "paddle" input { name: "x" data_type: TYPE_FP32 dims: [ -1 ] }'
        ' output { name: "fetch_name_0" data_type: TYPE_FP32 dims: [ -1, 2 ] }',
    )

    with pytest.raises(CoreError, match=r"^model 'm': \(?InvalidArgument.*shape") as caught:
        model(x=np.ones(3, np.float32))
    assert "\n" not in caught.value.message and len(caught.value.message) < 1100
    assert model(x=np.ones(4, np.float32))["fetch_name_0"].shape == (2, 2)


def test_a_program_that_mixes_rows_is_an_error(serve):
    model = serve(lambda folder: save(folder, lambda x: x.reshape([-1, 1]), x=ROW))

    with pytest.raises(
        CoreError, match=r"\[6, 1\] for 2 rows: the program does not keep rows apart"
    ):
        model(x=np.ones((2, 3), np.float32))


@pytest.mark.parametrize("paddle_2", [False, True])
@pytest.mark.parametrize("onednn", ["true", "false"])
def test_instances_answer_at_once(serve, paddle_2, onednn):
    config = f"""backend: "paddle" max_batch_size: 4 instance_group {{ count: 3 }}
        parameters {{ key: "enable_mkldnn" value {{ string_value: "{onednn}" }} }}
        parameters {{ key: "cpu_threads" value {{ string_value: "2" }} }}"""
    model = serve(doubled(paddle_2=paddle_2), config)
    arrays = [np.full((1 + i % 4, 3), i, np.float32) for i in range(60)]

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda x: next(iter(model(x=x).values())), arrays))

    for x, answer in zip(arrays, answers, strict=True):
        np.testing.assert_array_equal(answer, 2 * x)


def test_a_gpu_that_is_not_there_is_an_error(serve):
    with pytest.raises(CoreError, match=r"GPU"):
        serve(doubled(), 'backend: "paddle" instance_group { kind: KIND_GPU gpus: [ 0 ] }')


def test_a_program_without_rewriting(serve):
    model = serve(doubled(), 'backend: "paddle" optimization { graph { level: -1 } }')

    assert model(x=np.ones((1, 3), np.float32))["fetch_name_0"].tolist() == [[2, 2, 2]]


def test_long_runs_in_the_process_of_the_server_are_noted_once(serve, monkeypatch, caplog):
    monkeypatch.setattr("backend_paddle.instance._LONG_S", 0)
    model = serve(doubled())

    for _ in range(15):
        model(x=np.ones((1, 3), np.float32))

    assert caplog.text.count("give it a process of its own with the parameter EXECUTION_MODE") == 1
