"""Live settings of a version that gets other instances without a reload."""

import asyncio
import json
import threading

from .conftest import BATCHING, CONFIG, Echo, area, ask, delay

LONG = "dynamic_batching { max_queue_delay_microseconds: 60000000 }\n"
WARM = """
model_warmup [ { name: "w" batch_size: 1 inputs { key: "x" value {
  data_type: TYPE_FP32 dims: [ 1 ] zero_data: true } } } ]
"""


def groups(count):
    return f"instance_group [ {{ count: {count} kind: KIND_CPU }} ]"


def write_settings(models, text):
    path = models.path / "m" / "configs" / "settings.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)


async def test_settings_of_a_file_are_in_force_with_the_instances(models, serve):
    models.write(config=CONFIG + LONG)
    server = await serve(settings_read=True)
    before = server.models.endpoint("m")
    write_settings(models, json.dumps({"settings": delay(0)}))

    models.write(config=CONFIG + LONG + groups(2))
    await server.control.repository.load("m", {})

    assert server.models.endpoint("m") is before
    assert area(server).get("m")["now"]["dynamic_batching"]["max_queue_delay_microseconds"] == 0
    await asyncio.wait_for(asyncio.ensure_future(_answer(server)), 5)


async def _answer(server):
    return await ask(server)


async def test_a_wrong_file_that_comes_while_instances_open_is_for_the_next_load(models, serve):
    models.write()
    server = await serve(settings_read=True)

    class Opening(Echo):
        def open(self):
            write_settings(models, "{")

    server.backend.instance = Opening
    models.write(config=CONFIG + BATCHING + groups(2))
    await server.control.repository.load("m", {})

    (version,) = server.manager.versions()
    assert (version.state, version.chain.instances) == ("READY", 2)


async def test_a_change_while_instances_open_is_in_force_with_them(models, serve):
    models.write(config=CONFIG + LONG + WARM)
    server = await serve()
    opens, go, seen = asyncio.Event(), threading.Event(), []
    loop = asyncio.get_running_loop()

    class Opening(Echo):
        def open(self):
            loop.call_soon_threadsafe(opens.set)
            assert go.wait(10)
            seen.append(self.model.config.instance_group[0].count)

    server.backend.instance = Opening
    models.write(config=CONFIG + LONG + WARM + groups(3))
    load = asyncio.ensure_future(server.control.repository.load("m", {}))
    await opens.wait()
    await area(server).set("m", delay(0))
    go.set()
    await load

    (version,) = server.manager.versions()
    assert seen and set(seen) == {3}
    assert (version.chain.instances, version.config.instance_group[0].count) == (3, 3)
    assert version.model.config is version.config
    assert version.config.dynamic_batching.max_queue_delay_microseconds == 0
    await asyncio.wait_for(asyncio.ensure_future(_answer(server)), 5)
