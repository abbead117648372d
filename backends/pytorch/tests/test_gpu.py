"""Models on a GPU: streams, pinned copies, models that choose their devices."""

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
    inputs = [random.standard_normal((1 + n % 4, 1, 4, 4)).astype(np.float32) for n in range(40)]

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


# copies ---------------------------------------------------------------------------------------


@pytest.fixture
def server(serve, modules, io, tmp_path):
    """A core.Server of `m`, the module Convolutions, and of `twice`, an ensemble of two steps y = x + 1."""
    import core

    group = instances("KIND_GPU")
    config = BATCH + io("input", ("x", "FP32", "1, 4, 4")) + io("output", ("y", "FP32", 64))
    serve(modules.Convolutions().eval(), config + group)
    shape = io("input", ("x", "FP32", 3)) + io("output", ("y", "FP32", 3))
    folder = tmp_path / "models"
    (folder / "more" / "1").mkdir(parents=True)
    torch.jit.save(torch.jit.script(modules.Listed()), str(folder / "more" / "1" / "model.pt"))
    (folder / "more" / "config.pbtxt").write_text('backend: "pytorch" ' + BATCH + shape + group)
    steps = " ".join(
        f'step {{ model_name: "more" input_map {{ key: "x" value: "{a}" }} '
        f'output_map {{ key: "y" value: "{b}" }} }}'
        for a, b in (("x", "between"), ("between", "y"))
    )
    (folder / "twice" / "1").mkdir(parents=True)
    (folder / "twice" / "config.pbtxt").write_text(
        f'platform: "ensemble" max_batch_size: 8 {shape} ensemble_scheduling {{ {steps} }}'
    )
    (folder / "m" / "config.pbtxt").write_text('backend: "pytorch" ' + config + group)
    with core.Server(model_repository=str(folder)) as found:
        yield found


def copies(ask):
    """Return how often the profiler sees copies to a GPU and to the host during requests."""
    ask()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        ask()
        torch.cuda.synchronize()
    names = [event.name for event in profiler.events() if "Memcpy" in event.name]
    return [sum(way in name for name in names) for way in ("HtoD", "DtoH")]


def test_answers_are_those_of_the_bare_module_on_the_gpu(server, tmp_path):
    module = torch.jit.load(str(tmp_path / "models" / "m" / "1" / "model.pt"), "cuda:0")
    x = torch.randn(4, 1, 4, 4)

    found = server.infer("m", {"x": x.numpy()})["y"]

    with torch.inference_mode():
        expected = module(x.cuda()).cpu().numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


def test_two_steps_of_an_ensemble_copy_at_both_ends_only(server):
    x = np.ones((2, 3), np.float32)

    assert np.array_equal(server.infer("twice", {"x": x})["y"], x + 2)
    assert copies(lambda: server.infer("twice", {"x": x})) == [1, 1]


def test_arrays_that_stay_on_the_gpu_are_not_copied(server):
    from core import DeviceOutput

    x = torch.ones(2, 3, device="cuda:0")
    torch.cuda.synchronize()

    def ask():
        return server.infer("more", {"x": x}, outputs=[DeviceOutput("y")])

    assert torch.equal(torch.from_dlpack(ask()["y"]), x + 1)
    assert copies(ask) == [0, 0]


def test_tensors_of_many_requests_do_not_mix(server):
    from concurrent.futures import ThreadPoolExecutor

    from core import DeviceOutput

    inputs = [torch.full((1 + n % 3, 3), float(n), device="cuda:0") for n in range(200)]
    torch.cuda.synchronize()

    def ask(x):
        found = server.infer("more", {"x": x}, outputs=[DeviceOutput("y")])["y"]
        return torch.from_dlpack(found).cpu()

    with ThreadPoolExecutor(8) as clients:
        for x, y in zip(inputs, clients.map(ask, inputs), strict=True):
            assert torch.equal(y, x.cpu() + 1)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="there is no second GPU")
def test_arrays_of_another_gpu_are_copied_between_gpus(server):
    x = torch.ones(2, 3, device="cuda:1")
    torch.cuda.synchronize(1)

    assert server.infer("more", {"x": x})["y"].tolist() == (x + 1).tolist()
    assert copies(lambda: server.infer("more", {"x": x}))[0] == 0


# pools ----------------------------------------------------------------------------------------


@pytest.fixture
def pools():
    """Pools of the server, with little room."""
    driver = pytest.importorskip("core_gpu.driver").open_driver()
    from core_gpu.gpu_pools import GpuPools

    from core.devices import pools

    made = GpuPools(driver, pinned=1 << 16, sizes={0: 1 << 16}, limits={0: 1 << 20})
    pools.use(made)
    yield made
    pools.leave(made)
    made.close()


def test_answers_are_right_with_pools_that_are_often_full(pools, serve, modules, io):
    config = BATCH + io("input", ("x", "FP32", 1000)) + io("output", ("y", "FP32", 1000))
    model = serve(modules.Listed(), config + instances("KIND_GPU", 2))
    inputs = [np.full((1 + n % 8, 1000), n, np.float32) for n in range(300)]

    answers = model.together(*({"x": x} for x in inputs))

    assert pools.pinned_bytes()[0] == 1 << 16
    for x, answer in zip(inputs, answers, strict=True):
        assert np.array_equal(answer["y"], x + 1)


def test_a_state_grows_in_place(pools, serve, modules, io):
    from core.errors import CoreError
    from core.request import SEQUENCE_START, InferenceRequest
    from core.tensor import Tensor

    model = serve(
        modules.Appending(),
        "max_batch_size: 4 sequence_batching { direct { } state [ { "
        'input_name: "all" output_name: "after" data_type: TYPE_FP32 dims: [ -1 ] '
        "use_growable_memory: true } ] } "
        + io("input", ("x", "FP32", -1))
        + io("output", ("y", "FP32", 1))
        + instances("KIND_GPU"),
    )
    server = model.served._server.models

    async def ask(flags):
        inputs = {"x": Tensor.of("x", np.ones((1, 50_000), np.float32))}
        request = InferenceRequest("m", inputs, correlation_id=4, flags=flags)
        return (await server.infer(request)).output("y").array.item()

    found = [model.served._call(ask(SEQUENCE_START if not n else 0)) for n in range(5)]

    assert found == [50_000 * n for n in range(1, 6)]
    with pytest.raises(CoreError, match=r"has 1200004 bytes, .* permits 1048576 bytes"):
        model.served._call(ask(0))


# CUDA graphs ----------------------------------------------------------------------------------

GRAPHS = "optimization { cuda { graphs: true } } "


def launched(ask):
    """Return how many graphs the profiler sees launched during a call."""
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profiler:
        ask()
        torch.cuda.synchronize()
    return sum(event.name == "cudaGraphLaunch" for event in profiler.events())


def test_graphs_give_the_answers_of_the_module(serve, modules, io):
    torch.manual_seed(5)
    network = modules.Convolutions().eval()
    config = "max_batch_size: 8 " + io("input", ("x", "FP32", "1, 4, 4"))
    config += io("output", ("y", "FP32", 64)) + GRAPHS + instances("KIND_GPU")
    model = serve(network, config)
    random = np.random.default_rng(1)
    inputs = [random.standard_normal((1 + n % 3, 1, 4, 4)).astype(np.float32) for n in range(40)]

    found = [model(x=x)["y"] for x in inputs]

    network.cpu()
    for x, y in zip(inputs, found, strict=True):
        with torch.no_grad():
            expected = network(torch.from_numpy(x)).numpy()
        np.testing.assert_allclose(y, expected, rtol=1e-3, atol=1e-4)
    assert launched(lambda: model(x=inputs[0])) == 1


def test_answers_of_graphs_do_not_change_under_later_requests(serve, modules, io):
    config = "max_batch_size: 8 " + io("input", ("x", "FP32", 3)) + io("output", ("y", "FP32", 3))
    model = serve(modules.Identity(), config + GRAPHS + instances("KIND_GPU", 2))
    inputs = [np.full((1 + n % 4, 3), n, np.float32) for n in range(200)]

    answers = model.together(*({"x": x} for x in inputs))

    for x, answer in zip(inputs, answers, strict=True):
        assert np.array_equal(answer["y"], x)


def test_a_model_that_reads_a_tensor_on_the_host_runs_without_graphs(serve, io, caplog):
    code = (
        "import torch\n"
        "class Reads(torch.nn.Module):\n"
        "    def forward(self, x):\n"
        "        return x + 1 if x.sum().item() > 0 else x - 1\n"
    )
    model = serve(
        lambda folder: (folder / "model.py").write_text(code),
        'backend: "pytorch" runtime: "model.py" '
        + io("input", ("x", "FP32", 3))
        + io("output", ("y", "FP32", 3))
        + GRAPHS
        + instances("KIND_GPU"),
    )

    found = [model(x=np.full(3, sign, np.float32))["y"][0] for sign in [1, -1] * 5]

    assert found == [2, -2] * 5
    assert "runs without CUDA graphs: " in caplog.text


def test_an_exported_program_is_captured(serve, modules, export):
    model = serve(
        lambda folder: export(modules.Convolutions(), folder / "model.pt2", torch.ones(2, 1, 4, 4)),
        GRAPHS + instances("KIND_GPU"),
    )
    x = np.ones((2, 1, 4, 4), np.float32)

    first = [model(x=x)["OUTPUT__0"] for _ in range(8)]

    assert all(np.array_equal(each, first[0]) for each in first)
    assert launched(lambda: model(x=x)) == 1
