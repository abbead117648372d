"""Models in child processes on a real GPU, whose tensors are not copied to the host between them."""

import textwrap

import numpy as np
import pytest
from core_testing import leftovers

import core
from core.request import DeviceOutput

pytestmark = pytest.mark.gpu

X = np.array([[1, 2, 3]], np.float32)
# How a model gets its memory: what other processes can open, and what has to be copied for them.
MEMORY = {
    "cupy": "",
    "cupy-pool": "cupy.cuda.set_allocator(cupy.cuda.MemoryAsyncPool().malloc)",
    "cupy-managed": "cupy.cuda.set_allocator(cupy.cuda.malloc_managed)",
    "torch": "",
    "torch-pool": 'os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "backend:cudaMallocAsync"',
    "torch-segments": 'os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"',
}
MODEL = """
import os
import numpy as np
import triton_python_backend_utils as pb_utils
BEFORE
import LIBRARY
AFTER


def on_gpu(tensor):
    if LIBRARY.__name__ == "torch":
        return torch.from_dlpack(tensor).cuda()
    return cupy.asarray(tensor.as_numpy()) if tensor.is_cpu() else cupy.from_dlpack(tensor)


class TritonPythonModel:
"""
TWICE = """
def execute(self, requests):
    answers = []
    for request in requests:
        x = pb_utils.get_input_tensor_by_name(request, "x")
        y = on_gpu(x) * 2 + (0 if x.is_cpu() else 100)
        answers.append(pb_utils.InferenceResponse([pb_utils.Tensor.from_dlpack("y", y)]))
    return answers
"""
CALLS = """
def execute(self, requests):
    x = on_gpu(pb_utils.get_input_tensor_by_name(requests[0], "x"))
    call = pb_utils.InferenceRequest(
        model_name="twice", requested_output_names=["y"], inputs=[pb_utils.Tensor.from_dlpack("x", x)],
        preferred_memory=pb_utils.PreferredMemory(pb_utils.TRITONSERVER_MEMORY_GPU))
    response = call.exec()
    if response.has_error():
        raise pb_utils.TritonModelException(response.error().message())
    y = response.output_tensors()[0]
    y = on_gpu(y) + (0 if y.is_cpu() else 1000)
    return [pb_utils.InferenceResponse([pb_utils.Tensor.from_dlpack("y", y)])]
"""


@pytest.fixture(params=MEMORY)
def memory(request):
    library = pytest.importorskip(request.param.partition("-")[0])
    if library.__name__ == "torch" and not library.cuda.is_available():
        pytest.skip("there is no GPU")
    if library.__name__ == "cupy":
        try:
            library.cuda.runtime.getDeviceCount()
        except library.cuda.runtime.CUDARuntimeError as error:
            pytest.skip(str(error))
    return request.param


@pytest.fixture
def serving(tmp_path, memory):
    """Models `twice`, `other` and `calls`, and the ensemble `both` of the first two."""
    io = '{ name: "%s" data_type: TYPE_FP32 dims: [ -1 ] }'
    library = memory.partition("-")[0]
    before, after = ("", MEMORY[memory]) if library == "cupy" else (MEMORY[memory], "")
    head = MODEL.replace("BEFORE", before).replace("AFTER", after).replace("LIBRARY", library)
    for name, body in {"twice": TWICE, "other": TWICE, "calls": CALLS}.items():
        (tmp_path / name / "1").mkdir(parents=True)
        (tmp_path / name / "1" / "model.py").write_text(head + textwrap.indent(body, "    "))
        (tmp_path / name / "config.pbtxt").write_text(
            f'backend: "python" max_batch_size: 4 input [ {io % "x"} ] output [ {io % "y"} ] '
            "instance_group [ { kind: KIND_CPU count: 1 } ] "
            'parameters { key: "FORCE_CPU_ONLY_INPUT_TENSORS" value { string_value: "no" } }'
        )
    (tmp_path / "both" / "1").mkdir(parents=True)
    (tmp_path / "both" / "config.pbtxt").write_text(
        f'platform: "ensemble" max_batch_size: 4 input [ {io % "x"} ] output [ {io % "z"} ] '
        'ensemble_scheduling { step { model_name: "twice" input_map { key: "x" value: "x" } '
        'output_map { key: "y" value: "a" } } step { model_name: "other" '
        'input_map { key: "x" value: "a" } output_map { key: "y" value: "z" } } }'
    )
    with core.Server(model_repository=str(tmp_path)) as server:
        yield server


def lending(serving, name):
    chain = serving._inner.manager.resolve(name).chain
    return chain._pool.runners[0].instance._way._connection.process.lending


def test_steps_hand_their_tensors_on(serving):
    for i in range(20):
        assert np.array_equal(serving.infer("both", {"x": X + i})["z"], (X + i) * 4 + 100)

    for name in ("twice", "other"):
        held = lending(serving, name)
        assert leftovers.settles(lambda held=held: len(held.lender) == len(held.borrower) == 0)


def test_calls_hand_their_tensors_on_both_ways(serving):
    for i in range(20):
        assert np.array_equal(serving.infer("calls", {"x": X + i})["y"], (X + i) * 2 + 1100)


def test_a_program_gets_memory_of_a_child(serving, memory):
    found = serving.infer("both", {"x": X}, outputs=[DeviceOutput("z")])

    assert found.tensor("z").device[0] == 2
    library = pytest.importorskip(memory.partition("-")[0])
    there = library.from_dlpack(found["z"])
    host = there.get() if library.__name__ == "cupy" else there.cpu().numpy()
    assert np.array_equal(host, X * 4 + 100)
    assert np.array_equal(found.tensor("z").array, X * 4 + 100)


def test_memory_of_a_program_reaches_a_child_without_a_copy(serving, memory):
    library = pytest.importorskip(memory.partition("-")[0])
    given = library.asarray(X, device="cuda") if library.__name__ == "torch" else library.asarray(X)

    assert np.array_equal(serving.infer("twice", {"x": given})["y"], X * 2 + 100)
