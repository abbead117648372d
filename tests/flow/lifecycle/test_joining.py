"""Models that lie elsewhere and join a running server, each under a name of its own."""

import asyncio

import pytest

from core.errors import CoreError, Kind
from core.repository import Place

FROM_ELSEWHERE = """
name: "as its author calls it"
backend: "scaler"
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""
ENSEMBLE = """
platform: "ensemble"
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
ensemble_scheduling { step [
  { model_name: "step" input_map { key: "x" value: "x" } output_map { key: "y" value: "y" } } ] }
"""


@pytest.fixture
def elsewhere(models, tmp_path_factory):
    return type(models)(tmp_path_factory.mktemp("elsewhere"))


@pytest.fixture
def place(elsewhere):
    def make(name="a.tar.gz", label="1f3a", folder="model"):
        return Place(name, label, str(elsewhere.path), folder)

    return make


def states(server):
    return {entry["name"]: entry.get("state") for entry in server.index()}


async def test_a_model_serves_under_the_name_that_it_is_given(serve, elsewhere, place, ask):
    server = await serve()
    elsewhere.write("model", "3", config=FROM_ELSEWHERE)

    await server.management.join(*place())

    assert (await ask(server, name="a.tar.gz")).output("y").array == [3]
    assert server.model_config("a.tar.gz").name == "a.tar.gz"
    assert states(server) == {"a.tar.gz": "READY"}
    assert server.places() == [place()]


async def test_its_backend_is_not_told_by_that_name(serve, elsewhere, place, ask):
    server = await serve()
    (elsewhere.path / "m.scaler/1").mkdir(parents=True)
    (elsewhere.path / "m.scaler/1/model.txt").write_text("2")

    await server.management.join(*place(name="a.onnx", folder="m.scaler"))

    assert server.model_config("a.onnx").backend == "scaler"


async def test_an_ensemble_finds_its_steps_beside_it_and_they_leave_with_it(
    serve, elsewhere, place, ask
):
    server = await serve()
    elsewhere.write("model", "0", config=ENSEMBLE)
    elsewhere.write("step", "5")

    await server.management.join(*place())
    assert (await ask(server, name="a.tar.gz")).output("y").array == [5]
    assert states(server) == {"a.tar.gz": "READY", "step": "READY"}

    await server.management.leave("a.tar.gz")
    assert states(server) == {}
    assert server.places() == []
    with pytest.raises(CoreError, match=r"'a\.tar\.gz' is not found"):
        ask(server, name="a.tar.gz")


async def test_who_has_left_may_join_again(serve, elsewhere, place, ask):
    server = await serve()
    for factor in ("2", "7"):
        elsewhere.write("model", factor)
        await server.management.join(*place())
        assert (await ask(server, name="a.tar.gz")).output("y").array == [float(factor)]
        await server.management.leave("a.tar.gz")


async def test_leaving_waits_for_the_last_request(serve, elsewhere, place, ask, backend):
    server = await serve()
    elsewhere.write("model", "3")
    await server.management.join(*place())
    last = asyncio.ensure_future(ask(server, -1.0, "a.tar.gz"))
    await asyncio.to_thread(backend.waiting.wait)

    leaving = asyncio.ensure_future(server.management.leave("a.tar.gz"))
    await asyncio.sleep(0.05)
    assert not leaving.done()

    backend.released.set()
    assert (await last).output("y").array == [-3]
    await leaving


async def test_a_name_and_a_place_join_once(serve, models, elsewhere, place):
    models.write("m", "1")
    server = await serve()
    elsewhere.write("model", "3")
    await server.management.join(*place())

    for again, text in [
        (place(), "is already registered"),
        (place(name="b"), "is already registered"),
        (place()._replace(location=str(models.path / "..")), "there is a model 'a.tar.gz' already"),
        (place(name="m")._replace(location="/none"), "there is a model 'm' already"),
    ]:
        with pytest.raises(CoreError, match=text) as error:
            await server.management.join(*again)
        assert error.value.kind is Kind.ALREADY_EXISTS

    assert server.places() == [place()]


async def test_of_what_cannot_be_loaded_nothing_stays(serve, elsewhere, place, ask):
    server = await serve()
    elsewhere.write("model", "0", config=ENSEMBLE)
    elsewhere.write("step", "no number")

    with pytest.raises(CoreError, match="no number"):
        await server.management.join(*place())
    assert (server.places(), states(server)) == ([], {})

    elsewhere.write("step", "4")
    await server.management.join(*place())
    assert (await ask(server, name="a.tar.gz")).output("y").array == [4]


async def test_a_folder_that_is_not_there_is_refused(serve, place):
    server = await serve()

    with pytest.raises(CoreError, match=r"there is no folder 'a\.tar\.gz'"):
        await server.management.join(*place())

    assert server.places() == []


@pytest.mark.parametrize("name", ["a/b", "..", ""])
async def test_what_is_no_name_is_refused(serve, place, name):
    server = await serve()

    with pytest.raises(CoreError) as error:
        await server.management.join(*place(name=name))

    assert error.value.kind is Kind.INVALID


async def test_it_needs_mode_explicit(serve, place):
    server = await serve(model_control_mode="none")

    with pytest.raises(CoreError, match="explicit model load / unload is not allowed"):
        await server.management.join(*place())


async def test_who_never_joined_leaves_without_a_word(serve, models):
    models.write("m", "1")
    server = await serve(load_model=["m"])

    await server.management.leave("m")

    assert states(server) == {"m": "READY"}
