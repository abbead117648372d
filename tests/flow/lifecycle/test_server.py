"""Load, reload, unload and the end, through everything that a frontend would call."""

import asyncio

import numpy as np
import pytest

import core
from core import plugins
from core.errors import CoreError, Kind
from core.options import Options
from core.request import SEQUENCE_START, InferenceRequest
from core.server import InferenceServer
from core.tensor import Tensor

CONFIG = """
backend: "scaler"
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""


def y(response):
    return response.output("y").array.tolist()


async def test_a_loaded_model_answers_on_its_own_thread(serve, models, ask):
    models.write("m", "2")
    server = await serve(load_model=["m"])

    assert server.control.health.ready_here() and server.models.is_ready("m")
    assert y(await ask(server, 3)) == [6]
    (entry,) = server.control.health.statistics_here("m")
    assert (entry["version"], entry["inference_count"]) == ("1", 1)


class Keeping(core.Model):
    """Keeps weights on two devices; each instance has a buffer."""

    def load(self):
        self.factor = np.float32((self.path / "model.txt").read_text())

    def memory_usage(self):
        return [core.MemoryUsage("CPU", 0, 100), core.MemoryUsage("GPU", 1, 5)]


class Buffered(core.ModelInstance):
    def memory_usage(self):
        if self.model.factor < 0:
            raise RuntimeError("nobody knows")
        return [core.MemoryUsage("CPU", 0, 10)]


async def test_statistics_add_up_the_memory_of_a_model_and_its_instances(serve, models, backend):
    backend.model, backend.instance = Keeping, Buffered
    models.write("m", "2", config=CONFIG + "instance_group { count: 2 }")
    server = await serve(load_model=["m"])

    (entry,) = server.control.health.statistics_here("m")

    assert entry["memory_usage"] == [
        {"type": "CPU", "id": 0, "byte_size": 120},
        {"type": "GPU", "id": 1, "byte_size": 5},
    ]


async def test_statistics_work_if_a_backend_cannot_report_its_memory(
    serve, models, backend, caplog
):
    backend.model, backend.instance = Keeping, Buffered
    models.write("m", "-1")
    server = await serve(load_model=["m"])

    (entry,) = server.control.health.statistics_here("m")

    assert [each["byte_size"] for each in entry["memory_usage"]] == [100, 5]
    assert "model 'm' cannot tell what memory it uses" in caplog.messages


async def test_a_server_is_not_ready_before_its_models_are(models, backend):
    models.write("m", "2")
    options = Options.defaults(model_repository=[str(models.path)])
    server = InferenceServer(options, find_backend=lambda name: backend)
    starting = asyncio.ensure_future(server.start())
    await asyncio.sleep(0)
    assert server.control.health.live() and not server.control.health.ready_here()

    await starting

    assert server.control.health.ready_here()
    await server.stop(30)
    with pytest.raises(CoreError, match="Server exiting"):
        server.control.health.ready_here()


async def test_a_model_without_a_config_is_completed_by_its_backend(serve, models):
    models.write("m", "2", config='backend: "scaler"')
    server = await serve(load_model=["m"])

    assert server.models.metadata("m")["inputs"] == [
        {"name": "x", "datatype": "FP32", "shape": [-1, -1]}
    ]


async def test_no_configuration_is_completed_if_the_options_forbid_it(serve, models):
    models.write("m", "2", config='backend: "scaler"')
    server = await serve(load_model=["m"], disable_auto_complete_config=True)

    assert server.models.metadata("m")["inputs"] == []


async def test_a_missing_backend_is_named_with_the_package_to_install(serve, models):
    models.write("m", "2", config='backend: "nowhere"')
    server = await serve()

    with pytest.raises(CoreError, match="no backend named 'nowhere'"):
        await server.models.load("m")


async def test_reloads_under_traffic_lose_no_request(serve, models, ask):
    models.write("m", "2")
    server = await serve(load_model=["m"])
    done = asyncio.Event()
    answers = []

    async def client():
        while not done.is_set():
            answers.append(y(await ask(server)))

    clients = [asyncio.ensure_future(client()) for _ in range(8)]
    for factor in ("30", "2", "30", "2", "30"):
        models.write("m", factor)
        await server.models.load("m")
    done.set()
    await asyncio.gather(*clients)

    assert {answer[0] for answer in answers} == {2, 30}
    assert y(await ask(server)) == [30]


async def test_unload_waits_for_the_last_reply(serve, models, ask, backend):
    models.write("m", "2")
    server = await serve(load_model=["m"])
    reply = ask(server, -1)
    while not backend.waiting.is_set():
        await asyncio.sleep(0.001)

    await server.models.unload("m")
    with pytest.raises(CoreError) as error:
        ask(server)
    assert error.value.kind is Kind.NOT_FOUND
    assert server.manager.index()[0]["state"] == "UNLOADING"
    backend.released.set()

    assert y(await reply) == [-2]


async def test_a_failed_reload_keeps_the_old_one_serving(serve, models, ask):
    models.write("m", "2")
    server = await serve(load_model=["m"])
    models.write("m", "no number")

    with pytest.raises(CoreError, match="ValueError"):
        await server.models.load("m")

    assert y(await ask(server)) == [2]
    assert server.control.health.ready_here()


async def test_a_stop_in_time_answers_accepted_requests(serve, models, ask, backend):
    models.write("m", "2")
    server = await serve(load_model=["m"])
    reply = ask(server, -1)
    stop = asyncio.ensure_future(server.stop(30))
    while not backend.waiting.is_set():
        await asyncio.sleep(0.001)
    backend.released.set()

    assert y(await reply) == [-2]
    assert await stop == 0


async def test_a_stop_that_times_out_counts_the_busy_versions(serve, models, ask, backend):
    models.write("m", "2")
    server = await serve(load_model=["m"])
    reply = ask(server, -1)

    assert await server.stop(0) == 1

    backend.released.set()
    assert y(await reply) == [-2]


async def test_models_call_models_that_go_only_after_them(serve, models, ask):
    for name, factor in (("double", "2"), ("triple", "3")):
        models.write(name, factor)
    steps = "".join(
        f'step {{ model_name: "{model}" model_version: -1 input_map {{ key: "x" value: "{a}" }} '
        f'output_map {{ key: "y" value: "{b}" }} }} '
        for model, a, b in (("double", "x", "t"), ("triple", "t", "y"))
    )
    models.write(
        "six",
        "",
        config=f"""
        platform: "ensemble"
        input [ {{ name: "x" data_type: TYPE_FP32 dims: [ -1 ] }} ]
        output [ {{ name: "y" data_type: TYPE_FP32 dims: [ -1 ] }} ]
        ensemble_scheduling {{ {steps} }}
        """,
    )
    server = await serve()

    await server.models.load("six")
    assert y(await ask(server, 1, "six")) == [6]
    await server.models.unload("six", unload_dependents=True)

    assert server.manager.index(ready_only=True) == []


ENSEMBLE = """
platform: "ensemble"
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
ensemble_scheduling { step [
  { model_name: "m" model_version: -1
    input_map { key: "x" value: "x" } output_map { key: "y" value: "y" } }
] }
response_cache { enable: true }
"""


async def test_cached_answers_of_an_ensemble_do_not_outlive_the_model_of_its_step(
    serve, models, ask
):
    models.write("m", "3")
    models.write("e", "", config=ENSEMBLE)
    server = await serve(cache_config={"local": {"size": "100000"}})
    await server.models.load("e")
    answers = [(await ask(server, 2, "e")).output("y").array.item() for _ in range(2)]
    hits = server.control.health.statistics_here("e")[0]["inference_stats"]["cache_hit"]["count"]

    models.write("m", "50")
    await server.models.load("m")

    assert (answers, hits) == ([6, 6], 1)
    assert (await ask(server, 2, "e")).output("y").array.item() == 100


async def test_models_of_one_name_are_distinguished_in_statistics_and_metrics(
    serve, models, ask, tmp_path_factory
):
    other = type(models)(tmp_path_factory.mktemp("other"))
    models.write("m", "2")
    other.write("m", "3")
    places = [str(models.path), str(other.path)]
    server = await serve(model_repository=places, model_namespacing=True, load_model=["m"])

    for place, factor in zip(places, (2, 3), strict=True):
        assert y(await ask(server, 1, f"{place}::m")) == [factor]

    assert {each["namespace"] for each in server.control.health.statistics_here("m")} == set(places)
    (entry,) = server.control.health.statistics_here(f"{places[0]}::m")
    assert (entry["name"], entry["namespace"], entry["inference_count"]) == ("m", places[0], 1)
    [family] = [
        each for each in server.control.health.metrics_here() if each.name == "nv_inference_count"
    ]
    assert [each.labels["namespace"] for each in family.samples] == sorted(places)
    assert server.models.metadata(f"{places[1]}::m")["versions"] == ["1"]
    with pytest.raises(CoreError, match="There are 2 identifiers") as error:
        server.models.metadata("m")
    assert error.value.kind is Kind.INVALID


class Layers:
    """A plugin that gives each model a layer, which lets all requests through."""

    @core.hookimpl
    def core_layers(self, model):
        return [lambda handler: handler]


@pytest.fixture(params=[False, True], ids=["", "behind a layer"])
def layers(request):
    found = Layers()
    if request.param:
        plugins.hooks().register(found, "test layers")
    yield
    if request.param:
        plugins.hooks().unregister(found)


@pytest.mark.usefixtures("layers")
async def test_the_stop_does_not_wait_for_unfinished_sequences(models, backend):
    hour = "max_sequence_idle_microseconds: 3600000000"
    models.write("m", "2", config=f"{CONFIG}\nsequence_batching {{ direct {{ }} {hour} }}")
    options = Options.defaults(model_repository=[str(models.path)])
    server = InferenceServer(options, find_backend=lambda name: backend)
    await server.start()

    def ask(sequence, value):
        x = Tensor.of("x", np.array([value], np.float32))
        request = InferenceRequest("m", {"x": x})
        request.correlation_id, request.flags = sequence, SEQUENCE_START
        return server.models.infer(request)

    assert y(await ask(1, 3)) == [6]
    waiting = [ask(2, 4), ask(3, 5)]  # for the only place

    assert await server.stop(10) == 0

    assert [y(await reply) for reply in waiting] == [[8], [10]]
