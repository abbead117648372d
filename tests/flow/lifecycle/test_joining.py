"""Models in other folders that join a running server, each with a different served name."""

import asyncio
import json
import shutil
import threading

import pytest

from core.errors import CoreError, Kind
from core.repository import Catalog, ModelLocation

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
def another(models, tmp_path_factory):
    """A folder of models that is none of the server's."""
    return lambda: type(models)(tmp_path_factory.mktemp("elsewhere"))


@pytest.fixture
def elsewhere(another):
    return another()


@pytest.fixture
def place(elsewhere):
    def make(name="a.tar.gz", label="1f3a", folder="model"):
        return ModelLocation(name, label, str(elsewhere.path), folder)

    return make


def states(server):
    return {entry["name"]: entry.get("state") for entry in server.manager.index()}


async def test_a_model_serves_under_the_name_that_it_is_given(serve, elsewhere, place, ask):
    server = await serve()
    elsewhere.write("model", "3", config=FROM_ELSEWHERE)

    await server.control.repository.join(*place())

    assert (await ask(server, name="a.tar.gz")).output("y").array == [3]
    assert server.models.config("a.tar.gz").name == "a.tar.gz"
    assert states(server) == {"a.tar.gz": "READY"}
    assert server.control.repository.joined() == [place()]


async def test_its_served_name_does_not_choose_its_backend(serve, elsewhere, place, ask):
    server = await serve()
    (elsewhere.path / "m.scaler/1").mkdir(parents=True)
    (elsewhere.path / "m.scaler/1/model.txt").write_text("2")

    await server.control.repository.join(*place(name="a.onnx", folder="m.scaler"))

    assert server.models.config("a.onnx").backend == "scaler"


async def test_an_ensemble_finds_its_steps_in_its_folder_and_they_leave_with_it(
    serve, elsewhere, place, ask
):
    server = await serve()
    elsewhere.write("model", "0", config=ENSEMBLE)
    elsewhere.write("step", "5")

    await server.control.repository.join(*place())
    assert (await ask(server, name="a.tar.gz")).output("y").array == [5]
    assert states(server) == {"a.tar.gz": "READY", "step": "READY"}

    await server.control.repository.leave("a.tar.gz")
    assert states(server) == {}
    assert server.control.repository.joined() == []
    with pytest.raises(CoreError, match=r"'a\.tar\.gz' is not found"):
        ask(server, name="a.tar.gz")


async def test_a_model_that_left_may_join_again(serve, elsewhere, place, ask):
    server = await serve()
    for factor in ("2", "7"):
        elsewhere.write("model", factor)
        await server.control.repository.join(*place())
        assert (await ask(server, name="a.tar.gz")).output("y").array == [float(factor)]
        await server.control.repository.leave("a.tar.gz")


async def test_leaving_waits_for_the_last_request(serve, elsewhere, place, ask, backend):
    server = await serve()
    elsewhere.write("model", "3")
    await server.control.repository.join(*place())
    last = asyncio.ensure_future(ask(server, -1.0, "a.tar.gz"))
    await asyncio.to_thread(backend.waiting.wait)

    leaving = asyncio.ensure_future(server.control.repository.leave("a.tar.gz"))
    await asyncio.sleep(0.05)
    assert not leaving.done()

    backend.released.set()
    assert (await last).output("y").array == [-3]
    await leaving


async def test_a_name_and_a_place_join_once(serve, models, elsewhere, place):
    models.write("m", "1")
    server = await serve()
    elsewhere.write("model", "3")
    await server.control.repository.join(*place())

    for again, text in [
        (place(), "is already registered"),
        (place(name="b"), "is already registered"),
        (place()._replace(location=str(models.path / "..")), "there is a model 'a.tar.gz' already"),
        (place(name="m")._replace(location="/none"), "there is a model 'm' already"),
    ]:
        with pytest.raises(CoreError, match=text) as error:
            await server.control.repository.join(*again)
        assert error.value.kind is Kind.ALREADY_EXISTS

    assert server.control.repository.joined() == [place()]


async def test_a_model_that_cannot_load_leaves_no_trace(serve, elsewhere, place, ask):
    server = await serve()
    elsewhere.write("model", "0", config=ENSEMBLE)
    elsewhere.write("step", "no number")

    with pytest.raises(CoreError, match="no number"):
        await server.control.repository.join(*place())
    assert (server.control.repository.joined(), states(server)) == ([], {})

    elsewhere.write("step", "4")
    await server.control.repository.join(*place())
    assert (await ask(server, name="a.tar.gz")).output("y").array == [4]


async def test_a_folder_that_is_not_there_is_refused(serve, place):
    server = await serve()

    with pytest.raises(CoreError, match=r"there is no folder 'a\.tar\.gz'"):
        await server.control.repository.join(*place())

    assert server.control.repository.joined() == []


@pytest.mark.parametrize("name", ["a/b", "..", ""])
async def test_an_invalid_name_is_refused(serve, place, name):
    server = await serve()

    with pytest.raises(CoreError) as error:
        await server.control.repository.join(*place(name=name))

    assert error.value.kind is Kind.INVALID


async def test_it_needs_mode_explicit(serve, place):
    server = await serve(model_control_mode="none")

    with pytest.raises(CoreError, match="explicit model load / unload is not allowed"):
        await server.control.repository.join(*place())


async def test_leaving_without_joining_has_no_effect(serve, models):
    models.write("m", "1")
    server = await serve(load_model=["m"])

    await server.control.repository.leave("m")

    assert states(server) == {"m": "READY"}


async def refused(joining, kind, text):
    with pytest.raises(CoreError, match=text) as error:
        await joining
    assert error.value.kind is kind


@pytest.mark.parametrize("namespaces", [False, True])
async def test_of_two_models_with_one_name_the_second_is_refused(
    serve, another, ask, place, namespaces
):
    server = await serve(model_namespacing=namespaces)
    places = []
    for number in ("5", "6"):
        found = another()
        found.write("model", "0", config=ENSEMBLE)
        found.write("step", number)
        places.append(ModelLocation(f"m{number}", number, str(found.path), "model"))
    await server.control.repository.join(*places[0])

    await refused(
        server.control.repository.join(*places[1]),
        Kind.INVALID,
        "names others have already: 'step'",
    )

    assert (await ask(server, name="m5")).output("y").array == [5]
    assert server.control.repository.joined() == places[:1]
    await server.control.repository.leave("m5")
    await server.control.repository.join(*places[1])
    assert (await ask(server, name="m6")).output("y").array == [6]


@pytest.mark.parametrize("factor", ["2", "no number", ""])
async def test_a_model_that_came_with_a_load_request_keeps_its_name(
    serve, elsewhere, ask, place, factor
):
    server = await serve()
    config = {
        "backend": "scaler",
        "input": [{"name": "x", "data_type": "TYPE_FP32", "dims": [-1]}],
        "output": [{"name": "y", "data_type": "TYPE_FP32", "dims": [-1]}],
    }
    files = {"config": json.dumps(config), "file:1/model.txt": b"9"}
    await server.control.repository.load("up", files)
    if factor:
        elsewhere.write("model", factor)

    joining = server.control.repository.join(*place(name="up"))
    await refused(joining, Kind.ALREADY_EXISTS, "there is a model 'up' already")

    assert (await ask(server, name="up")).output("y").array == [9]
    assert server.control.repository.joined() == []


async def test_leaving_waits_for_requests_of_no_other_model(serve, another, ask, backend):
    server = await serve()
    for name in ("one", "two"):
        found = another()
        found.write("model", "2")
        await server.control.repository.join(name, name, str(found.path), "model")
    last = asyncio.ensure_future(ask(server, -1.0, "one"))
    await asyncio.to_thread(backend.waiting.wait)
    await server.control.repository.unload("one")

    await asyncio.wait_for(server.control.repository.leave("two"), 5)

    backend.released.set()
    await last


async def test_leaving_during_the_join_takes_effect_after_it(serve, elsewhere, place, monkeypatch):
    server = await serve()
    elsewhere.write("model", "2")
    there, go_on = threading.Event(), threading.Event()
    survey = Catalog.survey_names

    def slowly(self, names):
        there.set()
        assert go_on.wait(10)
        return survey(self, names)

    monkeypatch.setattr(Catalog, "survey_names", slowly)
    joining = asyncio.ensure_future(server.control.repository.join(*place()))
    await asyncio.to_thread(there.wait)
    assert server.control.repository.joined() == []  # it does not serve yet

    leaving = asyncio.ensure_future(server.control.repository.leave("a.tar.gz"))
    go_on.set()
    await asyncio.gather(joining, leaving)

    assert (server.control.repository.joined(), states(server)) == ([], {})


async def test_a_leaving_model_is_not_loaded_again(serve, elsewhere, ask, place, backend):
    server = await serve()
    elsewhere.write("model", "2")
    await server.control.repository.join(*place())
    last = asyncio.ensure_future(ask(server, -1.0, "a.tar.gz"))
    await asyncio.to_thread(backend.waiting.wait)
    leaving = asyncio.ensure_future(server.control.repository.leave("a.tar.gz"))
    while server.control.repository.joined():
        await asyncio.sleep(0)

    with pytest.raises(CoreError):
        await server.control.repository.load("a.tar.gz", {})

    backend.released.set()
    await asyncio.gather(last, leaving)
    assert states(server) == {}


async def test_a_folder_that_vanishes_is_in_nobodys_way(serve, another, place, ask):
    server = await serve()
    gone, other = another(), another()
    for found in (gone, other):
        found.write("model", "2")
    await server.control.repository.join("a", "1", str(gone.path), "model")
    shutil.rmtree(gone.path)

    await server.control.repository.join("b", "2", str(other.path), "model")
    joining = server.control.repository.join("a", "3", "/none", "model")
    await refused(joining, Kind.ALREADY_EXISTS, "there is a model 'a' already")
    assert states(server)["b"] == "READY"
    await server.control.repository.leave("a")

    assert states(server) == {"b": "READY"}


async def test_models_join_and_leave_concurrently(serve, another):
    server = await serve()
    folders = [another() for _ in range(4)]
    for each in folders:
        each.write("model", "2")

    async def come_and_go(number):
        for _ in range(10):
            place = (f"m{number}", str(number), str(folders[number].path), "model")
            await asyncio.gather(
                server.control.repository.join(*place), server.control.repository.leave(place[0])
            )
            await server.control.repository.leave(place[0])

    await asyncio.gather(*map(come_and_go, range(4)))

    assert (server.control.repository.joined(), states(server)) == ([], {})


async def test_a_name_with_blanks_around_it_is_refused(serve, elsewhere, place):
    server = await serve()
    elsewhere.write("model", "2")

    await refused(
        server.control.repository.join(*place(name=" a ")), Kind.INVALID, "there are blanks around"
    )


async def test_agents_do_not_take_the_name_for_the_folders(serve, elsewhere, place):
    server = await serve()
    agent = 'model_repository_agents { agents [ { name: "checksum" } ] }'
    elsewhere.write("m.scaler", "2", config=agent + FROM_ELSEWHERE.replace('backend: "scaler"', ""))

    await server.control.repository.join(*place(folder="m.scaler"))

    assert server.models.config("a.tar.gz").backend == "scaler"
