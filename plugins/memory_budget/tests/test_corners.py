"""A whole server: loads that meet, namespaces, loads that fail late, and the end."""

import threading

import core_memory_budget as plugin
import pytest

from core import config as configuration
from core.errors import CoreError, Kind

from .conftest import account, answers, until


async def test_two_ensembles_that_share_a_model_load_at_once_and_count_it_once(
    serve, models, backend, ask
):
    for name in "abc":
        models.write(name)
        backend.gates[name] = threading.Event()
    models.ensemble("e", "a", "b")
    models.ensemble("f", "a", "c")
    server = await serve(memory_budget=["10000"])

    replies = [ask(server, name, 1.0) for name in ("e", "f")]
    await until(lambda: account(server).used().get("host") == 4000)
    for gate in backend.gates.values():
        gate.set()
    values = [(await reply).outputs[0].array.tolist() for reply in replies]
    await until(lambda: not plugin._governors[id(server.models)]._loads)

    assert values == [[4.0]] * 2
    assert account(server).used()["host"] == backend.held == 3000


# namespaces -----------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["none", "poll"])
async def test_a_request_loads_the_model_of_its_namespace(
    serve, models, backend, ask, tmp_path, mode
):
    models.write("both/a")
    models.write("both/own")
    models.write("other/a", 3000)
    paths = [str(tmp_path / each) for each in ("both", "other")]
    server = await serve(model_repository=paths, model_namespacing=True, model_control_mode=mode)
    assert backend.loads == []

    await answers(server, ask, "own", f"{paths[0]}::a")

    assert backend.loads == ["own", "a"]
    assert account(server).used()["host"] == backend.held == 2000
    (found,) = await server.control.areas["model_memory"].account()
    rows = [(row["name"], row["state"]) for row in found["models"]]
    assert sorted(rows) == [("a", "loaded"), ("a", "out"), ("own", "loaded")]
    await answers(server, ask, f"{paths[1]}::a")


async def test_an_ensemble_loads_the_steps_of_its_namespace(serve, models, backend, ask, tmp_path):
    models.write("one/a")
    models.ensemble("one/e", "a", "a")
    models.write("two/a")
    paths = [str(tmp_path / each) for each in ("one", "two")]
    server = await serve(model_repository=paths, model_namespacing=True)

    assert (await ask(server, "e", 1.0)).outputs[0].array.tolist() == [4.0]

    assert backend.loads == ["a"]


# the end --------------------------------------------------------------------------


async def test_the_end_of_the_server_answers_what_waits(serve, models, backend, ask):
    models.write("a")
    backend.gates["a"] = threading.Event()
    server = await serve()
    reply = ask(server, "a")
    await until(backend.waits.is_set)

    plugin._governors[id(server.models)].close()

    with pytest.raises(CoreError, match="Server exiting") as error:
        await reply
    assert error.value.kind is Kind.UNAVAILABLE


# loads that fail late --------------------------------------------------------------


async def test_a_load_that_fails_at_its_end_closes_the_instances_before_the_model(
    serve, models, backend, ask, monkeypatch
):
    def broken(*args):
        raise OSError("no figure")

    held = []
    monkeypatch.setattr(
        backend.instance, "close", lambda self: held.append(backend.held), raising=False
    )
    monkeypatch.setattr("core_memory_budget.governor.found_out", broken)
    models.write("a")
    server = await serve()

    with pytest.raises(CoreError, match="no figure"):
        await ask(server, "a")

    assert held == [1000]
    assert backend.held == 0
    assert account(server).used() == {}
    assert all(each.memory_usage() == [] for each in server.manager.versions())


# completed configurations ------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "parameter", "governed"),
    [
        ({}, "", False),
        ({"memory_account": True}, "", True),
        ({"memory_budget": ["3500"]}, "", True),
        ({"load_on_request": True}, "", True),
        ({}, "memory.load_on_request: true", True),
        ({}, "memory.idle_secs: 3", True),
        ({}, "memory.pin: perhaps", False),
    ],
)
async def test_configurations_are_kept_for_models_that_may_load_again(
    serve, tmp_path, monkeypatch, options, parameter, governed
):
    asked = []
    monkeypatch.setattr(
        "core_memory_budget.completed.completed.find", lambda *given: asked.append(given)
    )
    config = configuration.parse_text('name: "m"', "test")
    if parameter:
        name, _, value = parameter.partition(": ")
        config.parameters[name].string_value = value

    await serve(**{"memory_budget": [], "load_on_request": False, **options})
    plugin.core_complete_config(config, tmp_path)

    assert bool(asked) is governed
