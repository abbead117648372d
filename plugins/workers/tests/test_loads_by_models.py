"""Models that load others, on a server of several workers."""

import pytest

from core.errors import CoreError, Kind

CONFIG = """
backend: "test"
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""


def states(index):
    return {entry["name"]: entry.get("state") for entry in index}


def brings(fleet, **models):
    for worker in fleet.workers.values():
        worker.backend.brings.update(models)


async def test_a_model_that_loads_another_while_it_is_loaded_brings_it_in_all(start, folder):
    folder.model("outer", config=CONFIG)
    folder.model("inner", config=CONFIG)
    folder.model("innermost", config=CONFIG)
    fleet = await start()
    brings(fleet, outer="inner", inner="innermost")

    await fleet.control(1).repository.load("outer", {})

    for worker in fleet.workers.values():
        assert worker.backend.loads == ["innermost", "inner", "outer"]
    wanted = dict.fromkeys(("outer", "inner", "innermost"), "READY")
    assert states(await fleet.control(2).repository.index()) == wanted
    await fleet.control(2).repository.unload("inner")
    assert (
        states(await fleet.control(1).repository.index())["inner"] != "READY"
    )  # it may still drain


async def test_so_does_one_of_those_that_are_loaded_at_the_start(start, folder):
    folder.model("outer", config=CONFIG)
    folder.model("inner", config=CONFIG)
    fleet = await start(load_model=["outer"], brought={"outer": "inner"})

    wanted = dict.fromkeys(("outer", "inner"), "READY")
    assert states(await fleet.control(2).repository.index()) == wanted


async def test_what_one_worker_cannot_bring_fails_the_model_that_wants_it_in_all(start, folder):
    folder.model("outer", config=CONFIG)
    folder.model("inner", config=CONFIG)
    fleet = await start()
    brings(fleet, outer="inner")
    fleet.workers[2].backend.refused.add("inner")

    with pytest.raises(CoreError, match="no memory here"):
        await fleet.control(1).repository.load("outer", {})

    found = states(await fleet.control(1).repository.index())
    assert "READY" not in (found["outer"], found["inner"])
    assert not await fleet.control(1).health.model_ready("inner")


async def test_a_model_may_bring_another_only_where_it_likes(start, folder):
    folder.model("outer", config=CONFIG)
    folder.model("inner", config=CONFIG)
    fleet = await start()
    fleet.workers[1].backend.brings["outer"] = "inner"

    await fleet.control(2).repository.load("outer", {})

    assert states(await fleet.control(2).repository.index())["outer"] == "READY"
    assert fleet.workers[1].server.models.is_ready("inner")


async def test_a_model_that_serves_cannot_load_another_while_models_are_being_loaded(start, folder):
    fleet = await start()
    worker = fleet.workers[1]
    refusal = []

    async def load_another():
        try:
            await worker.server.models.load("other")
        except CoreError as error:
            refusal.append(error)

    await worker.member.starting(load_another())

    assert refusal[0].kind is Kind.UNAVAILABLE
    assert "while models are being loaded" in refusal[0].message
