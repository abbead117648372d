"""What a plugin that loads models on request uses: a context around loads, models at rest, stand-ins."""

import asyncio
from contextlib import asynccontextmanager

import pytest

import core
from core import plugins
from core.errors import AtRest, CoreError, unavailable

CONFIG = """
backend: "scaler"
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""
ENSEMBLE = (
    CONFIG.replace('backend: "scaler"', 'platform: "ensemble"')
    + """
ensemble_scheduling { step {
  model_name: "m"
  input_map { key: "x" value: "x" }
  output_map { key: "y" value: "y" }
} }
"""
)


class Around:
    """Writes what happens; `refusal` is raised before a load."""

    def __init__(self):
        self.seen, self.refusal, self.gate, self.changes = [], None, None, []
        self.signatures = {}  # of the versions, as they are before their loads

    @core.hookimpl
    def core_around_load(self, version, server):
        return self.around(version, server)

    @core.hookimpl
    def core_model_changed(self, model, state, reason):
        self.changes.append((model.name, state))

    @asynccontextmanager
    async def around(self, version, server):
        assert server.takes_device
        self.signatures[version.name] = version.signature
        self.seen.append(("enter", version.name, list(version.signature.inputs)))
        if self.gate is not None:
            await self.gate.wait()
        if self.refusal is not None:
            raise self.refusal
        try:
            yield
        except BaseException as error:
            self.seen.append(("error", version.name, type(error).__name__))
            raise
        self.seen.append(("leave", version.name, version.model is not None))


@pytest.fixture
def around():
    plugin = Around()
    plugins.hooks().register(plugin, "around")
    yield plugin
    plugins.hooks().unregister(plugin)


async def test_a_plugin_surrounds_the_load_of_files_and_instances(serve, models, around, ask):
    models.write("m", "2")
    server = await serve()

    await server.manager.load("m", {})

    assert around.seen == [("enter", "m", ["x"]), ("leave", "m", True)]
    assert (await ask(server)).outputs[0].array.tolist() == [2.0]


async def test_it_is_left_with_the_error_of_the_load(serve, models, around):
    models.write("m", "no number")
    server = await serve()

    with pytest.raises(CoreError, match="no number"):
        await server.manager.load("m", {})

    assert around.seen == [("enter", "m", ["x"]), ("error", "m", "AuthorError")]


async def test_an_error_before_the_load_refuses_it(serve, models, around):
    models.write("m", "2")
    around.refusal = unavailable("there is no memory")
    server = await serve()

    with pytest.raises(CoreError, match="Unavailable: there is no memory"):
        await server.manager.load("m", {})


async def test_while_it_waits_another_version_may_use_the_load_slot(serve, models, around):
    models.write("m", "2")
    models.write("n", "3")
    server = await serve(model_load_thread_count=1)
    around.gate = asyncio.Event()

    loads = [asyncio.create_task(server.manager.load(name, {})) for name in ("m", "n")]
    while len(around.seen) < 2:
        await asyncio.sleep(0.01)
    around.gate.set()
    await asyncio.gather(*loads)

    assert server.manager.ready_versions("m") == server.manager.ready_versions("n") == [1]


async def test_a_version_left_at_rest_is_no_failure_and_is_loaded_later(serve, models, around, ask):
    models.write("m", "2")
    around.refusal = AtRest("until a request")
    server = await serve()

    await server.manager.load("m", {})

    assert server.manager.index() == [
        {"name": "m", "version": "1", "state": "UNAVAILABLE", "reason": "unloaded: until a request"}
    ]
    assert around.changes == [("m", "loading"), ("m", "gone")]
    around.refusal = None
    await server.manager.bring("m")
    assert (await ask(server)).outputs[0].array.tolist() == [2.0]


async def test_an_ensemble_left_at_rest_has_its_whole_signature_and_holds_no_model(
    serve, models, around
):
    models.write("m", "2", config=CONFIG + "model_transaction_policy { decoupled: true }")
    models.write("e", "", config=ENSEMBLE)
    server = await serve()
    await server.manager.load("m", {})
    around.refusal = AtRest("until a request")

    await server.manager.load("e", {})

    (version,) = [each for each in server.manager.versions() if each.name == "e"]
    assert version.at_rest
    assert around.signatures["e"].decoupled
    assert not hasattr(version, "chain")


async def test_a_model_rests_with_its_reason_until_it_is_brought_back(serve, models, ask):
    models.write("m", "2")
    server = await serve()
    await server.manager.load("m", {})

    assert await server.manager.rest("m", "unloaded: memory")

    assert server.manager.index()[0]["reason"] == "unloaded: memory"
    assert server.manager.all_ready()
    with pytest.raises(CoreError):
        ask(server)
    await server.manager.bring("m")
    assert (await ask(server)).outputs[0].array.tolist() == [2.0]


async def test_a_model_that_an_operation_uses_does_not_go_to_rest(serve, models, around):
    models.write("m", "2")
    server = await serve()
    around.gate = asyncio.Event()
    load = asyncio.create_task(server.manager.load("m", {}))
    while not around.seen:
        await asyncio.sleep(0.01)

    assert not await server.manager.rest("m", "unloaded: memory")
    assert not await server.manager.rest("unknown", "unloaded: memory")

    around.gate.set()
    await load


async def test_a_stand_in_answers_for_a_model_at_rest_until_an_operator_unloads_it(
    serve, models, ask
):
    models.write("m", "2")
    server = await serve()
    await server.manager.load("m", {})
    loaded = server.manager.resolve("m")
    await server.manager.rest("m", "unloaded: memory")

    server.manager.absent = lambda key, version: loaded if key == "m" else None

    assert server.models.metadata("m")["versions"] == ["1"]
    await server.manager.unload("m")
    with pytest.raises(CoreError):
        server.models.metadata("m")


async def test_a_plugin_may_add_models_to_the_start_in_mode_explicit(models, backend, ask):
    from core.options import Options
    from core.server import InferenceServer

    models.write("m", "2")
    models.write("n", "3")
    options = Options.defaults(model_control_mode="explicit", model_repository=[str(models.path)])
    server = InferenceServer(options, find_backend=lambda name: backend)
    server.manager.also_at_start = lambda survey: [name for name in survey if name == "n"]

    await server.start()

    assert (await ask(server, name="n")).outputs[0].array.tolist() == [3.0]
    assert not server.manager.ready_versions("m")
    await server.stop(10)
