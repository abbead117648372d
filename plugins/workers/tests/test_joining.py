"""Models that join a server of several workers."""

import asyncio

import numpy as np
import pytest

import core
from core.errors import CoreError
from core.repository import ModelLocation
from core.request import InferenceRequest
from core.tensor import Tensor

CONFIG = """
backend: "test"
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""


@pytest.fixture
def place(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "model/1").mkdir(parents=True)
    (elsewhere / "model/config.pbtxt").write_text(CONFIG)
    return ModelLocation("a", "1f3a", str(elsewhere), "model")


def everywhere(fleet):
    """Return for each worker the model locations that have joined, and the names of models that serve."""
    return [
        (
            worker.server.control.repository.joined(),
            [each["name"] for each in worker.server.manager.index(ready_only=True)],
        )
        for worker in fleet.workers.values()
    ]


async def replace(fleet, number):
    """End a worker, and start another one with its number, which runs the changes of the ledger."""
    async with fleet.exchange.turn:
        fleet.die(number)
        await fleet.workers[number].server.stop(5)
        operation = fleet.exchange.begin({number})
        await fleet.connect(number, operation.number)
        await fleet.begin(number)
        await fleet.exchange.catch_up(number)
        fleet.exchange.join(number)


async def test_what_joins_through_one_worker_serves_in_all_and_leaves_all(start, folder, place):
    fleet = await start()

    await fleet.control(1).repository.join(*place)
    assert everywhere(fleet) == [([place], ["a"])] * 2

    await fleet.control(2).repository.leave("a")
    assert everywhere(fleet) == [([], [])] * 2


async def test_what_one_worker_cannot_load_joins_none(start, folder, place):
    fleet = await start()
    fleet.workers[2].backend.refused.add("a")

    with pytest.raises(CoreError, match="no memory here"):
        await fleet.control(1).repository.join(*place)

    assert everywhere(fleet) == [([], [])] * 2


async def test_who_comes_later_has_what_has_joined_and_not_what_has_left(start, folder, place):
    fleet = await start()
    await fleet.control(1).repository.join(*place)
    await fleet.control(1).repository.join(*place._replace(name="b", location=place.location + "/"))
    await fleet.control(1).repository.leave("b")
    await replace(fleet, 2)

    assert everywhere(fleet) == [([place], ["a"])] * 2


@pytest.mark.parametrize("changes", ["load", "unload", "unload load"])
async def test_what_clients_do_with_it_does_not_hide_that_it_has_joined(start, place, changes):
    fleet = await start()
    await fleet.control(1).repository.join(*place)
    for change in changes.split():
        arguments = ("a", {}) if change == "load" else ("a",)
        await getattr(fleet.control(1).repository, change)(*arguments)

    await replace(fleet, 2)
    assert everywhere(fleet) == [([place], [] if changes == "unload" else ["a"])] * 2

    await fleet.control(2).repository.leave("a")
    await replace(fleet, 1)
    assert everywhere(fleet) == [([], [])] * 2


async def test_a_long_request_keeps_one_who_leaves_and_nobody_else(start, folder, place):
    fleet = await start()
    there, go_on = asyncio.Event(), asyncio.Event()

    class Slow(core.ModelInstance):
        async def execute(self, batch):
            there.set()
            await go_on.wait()
            return {"y": batch["x"]}

    for worker in fleet.workers.values():
        worker.backend.instance = Slow
    await fleet.control(1).repository.join(*place)
    x = Tensor.of("x", np.ones(1, np.float32))
    last = asyncio.ensure_future(
        fleet.workers[1].server.models.infer(InferenceRequest("a", {"x": x}))
    )
    await there.wait()

    leaving = asyncio.ensure_future(fleet.control(1).repository.leave("a"))
    while fleet.workers[1].server.control.repository.joined():
        await asyncio.sleep(0.01)
    await asyncio.wait_for(
        fleet.control(2).settings.change_log_settings({"log_verbose_level": 0}), 5
    )
    await replace(fleet, 2)
    assert not leaving.done()

    go_on.set()
    await last
    await asyncio.wait_for(leaving, 5)
