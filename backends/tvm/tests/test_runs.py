"""Datatypes, shapes, outputs that only a run shows, instances, threads, errors of requests."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import tvm
from backend_tvm.conformance import save
from backend_tvm.machine import aligned
from tvm import relax
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T

from core import dtypes
from core.errors import CoreError

ROW = ("float32", ("b", 3))


def doubled(dtype="float32", shape=("b", 3), **more):
    return lambda folder: save(folder, lambda x: x + x, x=(dtype, shape), **more)


def parameter(name, value):
    return f' parameters {{ key: "{name}" value {{ string_value: "{value}" }} }}'


@pytest.mark.parametrize(
    "dtype",
    [str(each.numpy) for each in dtypes.ALL if each not in (dtypes.BYTES, dtypes.BF16)],
)
def test_datatypes(serve, dtype):
    model = serve(lambda folder: save(folder, relax.op.flatten, x=(dtype, (2, 2))))
    x = np.array([[0, 1], [1, 1]], dtype)

    answer = model(x=x)["output0"]

    assert answer.dtype == x.dtype and answer.tolist() == [0, 1, 1, 1]


@pytest.mark.parametrize("mode", ["bytecode", "compiled"])
def test_a_run_shows_outputs_with_fixed_shapes(serve, mode):
    def function(x, i):
        return relax.op.sum(x), relax.op.take(x, i, 0)

    model = serve(
        lambda folder: save(folder, function, mode=mode, x=("float32", (4, 2)), i=("int64", (3,)))
    )

    answer = model(x=np.arange(8, dtype=np.float32).reshape(4, 2), i=np.array([3, 0, 1]))

    assert model.config.max_batch_size == 0
    assert [(io.name, list(io.dims)) for io in model.config.output] == [
        ("output0", [1]),
        ("output1", [3, 2]),
    ]
    assert answer["output0"].tolist() == [28]
    assert answer["output1"].tolist() == [[6, 7], [0, 1], [2, 3]]


def test_what_contradicts_outputs_of_a_run_is_an_error_of_the_load(serve):
    config = (
        'backend: "tvm" input { name: "x" data_type: TYPE_FP32 dims: [ 2 ] }'
        ' output { name: "output0" data_type: TYPE_FP32 dims: [ 3 ] }'
    )
    with pytest.raises(
        CoreError, match=r"'output0': the model has dims \[2\], the configuration \[3\]"
    ):
        serve(doubled(shape=(2,)), config)


def test_a_row_without_dims_is_one_element(serve):
    model = serve(doubled(shape=("b",)))

    assert list(model.config.input[0].dims) == [1]
    assert model(x=np.array([[3], [4]], np.float32))["output0"].tolist() == [[6], [8]]


def test_rows_without_dims_may_be_so_in_the_configuration(serve):
    text = """backend: "tvm" max_batch_size: 4
        input { name: "x" data_type: TYPE_FP32 dims: 1 reshape { } }
        output { name: "output0" data_type: TYPE_FP32 dims: 1 reshape { } }"""
    model = serve(doubled(shape=("b",)), text)

    assert model(x=np.array([[3], [4]], np.float32))["output0"].tolist() == [[6], [8]]


def test_a_tensor_without_dims_is_one_element(serve):
    model = serve(doubled(shape=()))

    assert model(x=np.array([3], np.float32))["output0"].tolist() == [6]


def test_an_input_that_is_returned_is_not_the_memory_of_the_request(serve):
    model = serve(lambda folder: save(folder, lambda x: (x, x + x), x=ROW))
    x = np.ones((2, 3), np.float32)

    answer = model(x=x)["output0"]

    assert answer.tolist() == x.tolist() and not np.may_share_memory(answer, x)


def test_a_constant_that_is_returned_is_not_the_memory_of_the_model(serve):
    constant = relax.const(np.ones(3, np.float32))
    model = serve(lambda folder: save(folder, lambda x: (x + x, constant), x=ROW))
    x = np.ones((2, 3), np.float32)

    model(x=x)["output1"].fill(7)

    assert model(x=x)["output1"].tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    "array",
    [
        np.ones(1000, np.uint8)[1:41].view(np.float32).reshape(2, 5),
        np.ones((4, 6), np.float32)[::2, ::2],
        np.broadcast_to(np.float32(1), (2, 3)),
        np.ones((0, 3), np.float32),
    ],
)
def test_arrays_are_aligned_for_compiled_code(array):
    found = aligned(array)

    assert found.ctypes.data % 64 == 0 and found.flags.carray
    np.testing.assert_array_equal(found, array)


def test_a_function_that_mixes_rows_has_no_batches(serve):

    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(("b", 3), "float32")):
            return R.reshape(x, (-1, 1))

    model = serve(
        lambda folder: tvm.compile(Module, "llvm").export_library(str(folder / "model.so")),
        'backend: "tvm" max_batch_size: 0',
    )

    assert list(model.config.output[0].dims) == [-1, 1]
    assert model(x=np.ones((2, 3), np.float32))["output0"].shape == (6, 1)


def test_a_request_that_fails_names_the_model_and_the_reason(serve):
    model = serve(lambda folder: save(folder, lambda x: x + x, x=("float32", ("n", "n"))))

    with pytest.raises(CoreError, match=r"^model 'm': .*match_cast error") as caught:
        model(x=np.ones((2, 3), np.float32))
    assert "\n" not in caught.value.message and len(caught.value.message) < 1100
    assert model(x=np.ones((2, 2), np.float32))["output0"].shape == (2, 2)


@I.ir_module
class Parallel:
    """y = 2x by a loop that TVM's pool of threads shares."""

    @T.prim_func(private=True, s_tir=True)
    def twice(x: T.Buffer((64, 512), "float32"), y: T.Buffer((64, 512), "float32")):
        T.func_attr({"tirx.noalias": True})
        for i in T.parallel(64):
            for j in range(512):
                with T.sblock("y"):
                    a, b = T.axis.remap("SS", [i, j])
                    y[a, b] = x[a, b] * T.float32(2)

    @R.function
    def main(x: R.Tensor((64, 512), "float32")):
        return R.call_tir(Parallel.twice, (x,), R.Tensor((64, 512), "float32"))


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_of_an_execution(serve, threads):
    before = cores()  # a load runs the module, too
    model = serve(
        lambda folder: tvm.compile(Parallel, "llvm").export_library(str(folder / "model.so")),
        'backend: "tvm"' + parameter("threads", threads),
    )
    x = np.random.default_rng(1).random((64, 512), np.float32)

    np.testing.assert_array_equal(model(x=x)["output0"], 2 * x)

    assert cores() == before


def cores():
    """Return the sets of cores that the threads of this process may use."""
    found = (each.read_text() for each in Path("/proc/self/task").glob("*/status"))
    return {re.search(r"Cpus_allowed_list:\s*(\S+)", each)[1] for each in found}


@pytest.mark.parametrize("allocator", ["pooled", "naive"])
@pytest.mark.parametrize("mode", ["bytecode", "compiled"])
def test_instances_answer_at_once(serve, allocator, mode):
    config = 'backend: "tvm" max_batch_size: 4 instance_group { count: 3 }'
    model = serve(doubled(mode=mode), config + parameter("allocator", allocator))
    arrays = [np.full((1 + i % 4, 3), i, np.float32) for i in range(60)]

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda x: model(x=x)["output0"], arrays))

    for x, answer in zip(arrays, answers, strict=True):
        np.testing.assert_array_equal(answer, 2 * x)
