"""Models that join a server of several workers."""

import pytest

from core.errors import CoreError
from core.repository import Place

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
    return Place("a", "1f3a", str(elsewhere), "model")


def everywhere(fleet):
    """The places and the models that serve, of each worker."""
    return [
        (worker.server.places(), [each["name"] for each in worker.server.index(ready_only=True)])
        for worker in fleet.workers.values()
    ]


async def test_what_joins_through_one_worker_serves_in_all_and_leaves_all(start, folder, place):
    fleet = await start()

    await fleet.management(1).join(*place)
    assert everywhere(fleet) == [([place], ["a"])] * 2

    await fleet.management(2).leave("a")
    assert everywhere(fleet) == [([], [])] * 2


async def test_what_one_worker_cannot_load_joins_none(start, folder, place):
    fleet = await start()
    fleet.workers[2].backend.refused.add("a")

    with pytest.raises(CoreError, match="no memory here"):
        await fleet.management(1).join(*place)

    assert everywhere(fleet) == [([], [])] * 2


async def test_who_comes_later_has_what_has_joined_and_not_what_has_left(start, folder, place):
    fleet = await start()
    await fleet.management(1).join(*place)
    await fleet.management(1).join(*place._replace(name="b", location=place.location + "/"))
    await fleet.management(1).leave("b")
    fleet.die(2)
    await fleet.workers[2].server.stop(5)

    operation = fleet.exchange.begin({2})
    await fleet.connect(2, operation.number)
    await fleet.begin(2)
    await fleet.exchange.catch_up(2)

    assert everywhere(fleet) == [([place], ["a"])] * 2
