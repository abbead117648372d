"""The sections of python -m benchmarks.gpu, on a CPU that plays the GPU."""

import sys
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("backend_pytorch")

from benchmarks.gpu import (  # noqa: E402
    chains,
    generation,
    goals,
    models,
    networks,
    onnx,
    overlapping,
    residents,
    results,
    shared,
)

MIB = 1 << 20
INPUTS = (
    'input [ { name: "INPUT__0" data_type: TYPE_FP16 dims: [ 4 ] } ]\n'
    'output [ { name: "OUTPUT__0" data_type: TYPE_FP16 dims: [ 3 ] } ]\n'
)
COPY = {"cat": "gpu_memcpy", "name": "Memcpy DtoH (Device -> Pinned)", "ts": 2, "dur": 4}
KERNEL = {"cat": "kernel", "name": "add", "ts": 0, "dur": 4}


class Tiny(torch.nn.Module):
    """Rows of 4 → rows of 3."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)

    def forward(self, x):
        return self.layer(x)


class PlayedGraph:
    """What was captured stays as it is: the inputs of a benchmark do not change."""

    def pool(self):
        return None

    def replay(self):
        pass


@contextmanager
def played_capture(graph, pool=None, stream=None):
    yield


def played_event():
    nothing = lambda *_: None  # noqa: E731
    return SimpleNamespace(record=nothing, wait=nothing, synchronize=nothing)


@pytest.fixture
def gpu(monkeypatch):
    """Play a GPU: tensors stay in host memory, configurations ask for the CPU, networks are tiny."""
    stay = lambda self, *_, **__: self  # noqa: E731
    for owner, name in (
        (torch.Tensor, "cuda"),
        (torch.Tensor, "pin_memory"),
        (torch.nn.Module, "cuda"),
    ):
        monkeypatch.setattr(owner, name, stay)
    played = {
        "Stream": type("PlayedStream", (), {}),  # transformers has it in an annotation
        "stream": lambda stream: nullcontext(),
        "Event": played_event,
        "CUDAGraph": PlayedGraph,
        "graph": played_capture,
        "synchronize": lambda: None,
        "mem_get_info": lambda: (3 * MIB, 8 * MIB),
    }
    for name, value in played.items():
        monkeypatch.setattr(torch.cuda, name, value)
    write_text = Path.write_text

    def write_for_cpu(path, text, *more, **options):
        text = text.replace("KIND_GPU", "KIND_CPU").replace(
            'string_value: "cuda"', 'string_value: "cpu"'
        )
        return write_text(path, text, *more, **options)

    monkeypatch.setattr(Path, "write_text", write_for_cpu)
    monkeypatch.setattr(networks, "Tiny", Tiny, raising=False)
    tiny = networks.Network("resnet50", Tiny, lambda rows: torch.rand(rows, 4).half(), INPUTS)
    both = (tiny, replace(tiny, name="encoder"))
    monkeypatch.setattr(models, "NETWORKS", both)
    for each in both:
        monkeypatch.setitem(networks.BY_NAME, each.name, each)
    for module in (models, onnx, overlapping, residents):
        monkeypatch.setattr(module, "DEVICE", "cpu")
    for module in (chains, overlapping):
        monkeypatch.setattr(module, "recorded", lambda work: (work(), [COPY, KERNEL])[1])


def test_each_format_is_compared_with_its_loop(gpu, tmp_path):
    cases = [models.Case(kind, batches=(1, 2)) for kind in ("torchscript", "exported", "module")]
    more = {"batches": (2,), "networks": models.ONE}
    cases.append(models.Case("torchscript", 2, polls=True, ahead=3, **more))

    rows = list(models.measure(tmp_path, 0.01, 1, cases))

    assert [row.get("error") for row in rows] == [None] * 13
    assert {row["network"] for row in rows} == {"resnet50", "encoder"}
    assert all(row["ratio"] > 0 and row["largest_difference"] == 0 for row in rows)
    assert all(row["ratio_filled"] > 0 and row["compute_infer_busy_us"] > 0 for row in rows)
    assert all(set(goals.missed("models", row)) == {"ratio", "added_p50_ms"} for row in rows)


def test_a_file_that_cannot_be_made_keeps_no_other_case_from_being_measured(gpu, tmp_path):
    cases = [models.Case("no format", batches=(1,)), models.Case("module", batches=(1,))]
    failing = models.file_of

    def file_of(network, kind, folder, device):
        if kind == "no format":
            raise RuntimeError("it does not compile")
        return failing(network, kind, folder, device)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(models, "file_of", file_of)
        rows = list(models.measure(tmp_path, 0.01, 1, cases))

    assert [row.get("error") for row in rows] == ["RuntimeError: it does not compile"] * 2 + [
        None
    ] * 2
    assert rows[0]["format"] == "no format" and "ratio" in rows[-1]


def test_chains_of_three_steps_answer(gpu, monkeypatch, tmp_path):
    pytest.importorskip("backend_python")
    monkeypatch.setattr(chains, "SIZE", 8)
    for name in ("IO", "OUT", "BLS_CONFIG"):
        monkeypatch.setattr(chains, name, getattr(chains, name).replace(str(1 << 20), "8"))

    rows = list(chains.measure(tmp_path))

    assert [(row["chain"], row["ends"]) for row in rows] == [
        ("ensemble", "host"),
        ("ensemble", "GPU"),
        ("bls", "host"),
        ("bls", "GPU"),
    ]
    assert all(row["right"] and row["DtoH"] == 1 for row in rows)
    assert [goals.missed("chains", row).get("DtoH") for row in rows] == [None, True] * 2


def test_the_overlap_has_one_row(gpu, tmp_path):
    (row,) = overlapping.measure(tmp_path)

    assert row["outputs_beside_kernels"] == 0.5 and row["images_per_s"] > 0


def test_reloads_report_growth_even_if_there_is_time_for_three_only(gpu, tmp_path):
    (row,) = residents.reloads(tmp_path, 0.0)

    assert row["reloads"] == 3 and row["gpu_mib"] == [5.0, 5.0] and row["gpu_growth_mib"] == 0


def test_a_model_that_runs_out_of_memory_is_refused_beside_others(gpu, monkeypatch, tmp_path):
    hungry = residents.HUNGRY.replace("return ", 'raise torch.OutOfMemoryError("1 TB"); return ')
    monkeypatch.setattr(residents, "HUNGRY", hungry)

    (row,) = residents.out_of_memory(tmp_path)

    assert row["refused"] == 3 and "1 TB" in row["refusal"]
    assert row["others_answer"] and row["next_loads"]


def test_metrics_are_compared_with_what_nvidia_smi_says():
    page = (
        "# HELP nv_gpu_power_usage watts\n"
        'nv_gpu_power_usage{gpu_uuid="GPU-1"} 101.0\n'
        'nv_gpu_power_limit{gpu_uuid="GPU-1"} 700.0\n'
        'nv_gpu_utilization{gpu_uuid="GPU-1"} 0.5\n'
        'nv_gpu_memory_total_bytes{gpu_uuid="GPU-1"} 1048576\n'
        'nv_gpu_memory_used_bytes{gpu_uuid="GPU-1"} 524288\n'
    )

    rows = {row["metric"]: row for row in residents.compared(page, "1, 1, [N/A], 100.00, 50")}

    assert "difference" not in rows["nv_gpu_power_limit"]
    assert {name: row["difference"] for name, row in rows.items() if "difference" in row} == {
        "nv_gpu_power_usage": pytest.approx(0.01),
        "nv_gpu_utilization": 0.0,
        "nv_gpu_memory_total_bytes": 0.0,
        "nv_gpu_memory_used_bytes": 0.5,
    }


def test_generated_text_is_compared_with_transformers(gpu, monkeypatch, tmp_path):
    pytest.importorskip("transformers")
    pytest.importorskip("backend_transformers")
    pytest.importorskip("frontend_openai")
    small = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1}
    small |= {"num_attention_heads": 2, "num_key_value_heads": 1}
    for name, value in {"SIZES": small, "STREAMS": (1, 3), "TOKENS": 4, "ROUNDS": 1}.items():
        monkeypatch.setattr(generation, name, value)

    rows = list(generation.measure(tmp_path))

    assert [row["streams"] for row in rows] == [1, 3]
    assert all(row["served_per_s"] > 0 and row["first_token_ms"] > 0 for row in rows)


def test_onnx_is_left_out_without_cuda(tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    if "CUDAExecutionProvider" in onnxruntime.get_available_providers():
        pytest.skip("this onnxruntime has CUDA")

    with pytest.raises(results.LeftOut, match=r"onnxruntime [\d.]+ has no CUDAExecutionProvider"):
        list(onnx.measure(tmp_path, 0.1, 1))


class PlayedClient:
    """A server that adds 1 to the first half of a region, into the second half."""

    def __init__(self, url):
        self.regions = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def is_server_ready(self):
        return True

    def register_cuda_shared_memory(self, name, handle, device, size):
        assert handle.nbytes == size and device == 0
        self.regions[name] = handle

    def infer(self, model, inputs, outputs):
        (name, size, _), (_, _, offset) = inputs[0].region, outputs[0].region
        numbers = self.regions[name].view(np.float32)
        numbers[offset // 4 :] = numbers[: size // 4] + 1


class PlayedTensor:
    def __init__(self, *_):
        pass

    def set_shared_memory(self, name, size, offset=0):
        self.region = name, size, offset


def test_the_client_of_shared_memory_checks_its_answers(monkeypatch):
    pytest.importorskip("tritonclient")
    cuda = ModuleType("tritonclient.utils.cuda_shared_memory")
    cuda.create_shared_memory_region = lambda name, size, device: np.zeros(size, np.uint8)
    cuda.set_shared_memory_region = lambda region, arrays: np.copyto(
        region[: arrays[0].nbytes], arrays[0].view(np.uint8)
    )
    cuda.get_raw_handle = lambda region: region
    cuda.get_contents_as_numpy = lambda region, dtype, shape: region.view(dtype)
    library = ModuleType("tritonclient.played")
    library.InferenceServerClient = PlayedClient
    library.InferInput = library.InferRequestedOutput = PlayedTensor
    utils = ModuleType("tritonclient.utils")
    utils.cuda_shared_memory = cuda
    monkeypatch.setitem(sys.modules, "tritonclient.utils", utils)
    monkeypatch.setitem(sys.modules, cuda.__name__, cuda)
    monkeypatch.setitem(sys.modules, library.__name__, library)
    monkeypatch.setattr(shared, "SIZES", {"small": 16, "large": 64})
    monkeypatch.setattr(shared, "CALLS", 3)

    found = shared.client("played", 1)

    assert set(found) == {"4_kB_ms", "16_MB_ms", "added_ms"}
    assert list(goals.missed("shared", found)) == ["added_ms"]
