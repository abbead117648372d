"""On a GPU: streams, pinned copies, models that place themselves."""

import numpy as np
import pytest
import torch

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU that torch can use"),
]

BATCH = "max_batch_size: 8 dynamic_batching { } "


def instances(kind, count=1):
    return f"instance_group [ {{ kind: {kind} count: {count} }} ]"


@pytest.mark.parametrize("count", [1, 2])
def test_answers_are_those_of_the_cpu(serve, modules, io, count):
    torch.manual_seed(5)
    network = modules.Convolutions().eval()
    config = BATCH + io("input", ("x", "FP32", "1, 4, 4")) + io("output", ("y", "FP32", 64))
    model = serve(network, config + instances("KIND_GPU", count))
    random = np.random.default_rng(1)
    inputs = [random.standard_normal((n % 4, 1, 4, 4)).astype(np.float32) for n in range(40)]

    network.cpu()
    for each, answer in zip(inputs, model.together(*({"x": x} for x in inputs)), strict=True):
        with torch.no_grad():
            expected = network(torch.from_numpy(each)).numpy()
        np.testing.assert_allclose(answer["y"], expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", ["ENABLE_CACHE_CLEANING", "DISABLE_CUDNN"])
def test_switches_for_gpus_change_no_answer(serve, modules, io, name):
    config = BATCH + io("input", ("x", "FP32", 3)) + io("output", ("y", "FP32", 3))
    more = f'parameters {{ key: "{name}" value: {{ string_value: "true" }} }} '
    model = serve(modules.Identity(), config + more + instances("KIND_GPU"))
    x = np.ones((2, 3), np.float32)

    assert model(x=x)["y"].tolist() == x.tolist()


def test_a_model_places_itself(serve, io):
    code = (
        "import torch\n"
        "class Two(torch.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        last = torch.cuda.device_count() - 1\n"
        "        self.first = torch.nn.Parameter(torch.full((3,), 2.0, device='cuda:0'))\n"
        "        self.second = torch.nn.Parameter(torch.full((3,), 5.0, device=f'cuda:{last}'))\n"
        "    def forward(self, x):\n"
        "        return (x * self.first).to(self.second.device) * self.second\n"
    )
    model = serve(
        lambda folder: (folder / "model.py").write_text(code),
        'backend: "pytorch" runtime: "model.py" '
        + io("input", ("x", "FP32", 3))
        + io("output", ("y", "FP32", 3))
        + instances("KIND_MODEL"),
    )

    assert model(x=np.ones(3, np.float32))["y"].tolist() == [10, 10, 10]


def test_an_exported_program_moves_to_the_gpu(serve, modules, export, io):
    model = serve(
        lambda folder: export(modules.Convolutions(), folder / "model.pt2", torch.ones(2, 1, 4, 4)),
        instances("KIND_GPU"),
    )

    assert model(x=np.ones((2, 1, 4, 4), np.float32))["OUTPUT__0"].shape == (2, 64)
