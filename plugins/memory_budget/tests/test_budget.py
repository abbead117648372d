"""A server with more models than memory: 3500 bytes, models of 1000 each."""

import asyncio

import pytest

from core.errors import CoreError, Kind

from .conftest import ABCD, account, answers, loaded, until


@pytest.fixture(autouse=True)
def _equal_costs(monkeypatch):
    """Loads of a few milliseconds take times that differ by chance."""
    monkeypatch.setattr("core_memory_budget.policy._STEP", 1e30)


async def test_the_least_recently_used_model_makes_room(serve, models, backend, ask, states):
    for name in ABCD:
        models.write(name)
    server = await serve()

    await answers(server, ask, "a", "b", "c")
    await asyncio.sleep(0.01)
    await answers(server, ask, "a", "d")

    assert loaded(server) == ["a", "c", "d"]
    assert (await states(server))["b"] == "UNAVAILABLE unloaded: memory"
    assert backend.most <= 3500
    await answers(server, ask, "b")
    assert backend.loads == ["a", "b", "c", "d", "b"]


async def test_a_storm_of_requests_never_exceeds_the_budget(serve, models, backend, ask):
    names = [f"m{number}" for number in range(12)]
    for number, name in enumerate(names):
        models.write(name, 300 + 100 * number)
    server = await serve()

    replies = [ask(server, names[(7 * turn) % 12], turn) for turn in range(240)]
    values = [(await reply).outputs[0].array[0] for reply in replies]

    assert values == [2 * turn for turn in range(240)]
    assert backend.most <= 3500
    assert account(server).used()["host"] == backend.held


async def test_a_model_that_is_too_large_is_refused_with_the_numbers(serve, models, ask):
    models.write("a", 3000, pin="true")
    models.write("b", 1000)
    server = await serve()
    await answers(server, ask, "a")

    with pytest.raises(CoreError) as error:
        await ask(server, "b")

    assert error.value.kind is Kind.UNAVAILABLE
    for part in ("needs 1000 bytes", "budget is 3.4 KiB", "a 2.9 KiB", "--memory-budget"):
        assert part in error.value.message
    await answers(server, ask, "a")


async def test_a_pinned_model_stays_and_smaller_priority_goes_first(serve, models, ask):
    models.write("a", pin="true")
    models.write("b", priority="5")
    models.write("c", priority="1")
    models.write("d")
    server = await serve()

    await answers(server, ask, "a", "b", "c", "d")

    assert loaded(server) == ["a", "b", "d"]


async def test_a_model_with_a_running_request_is_unloaded_after_it_and_a_new_request_waits(
    serve, models, backend, ask
):
    models.write("a", 3000)
    models.write("b", 3000)
    server = await serve()
    running = ask(server, "a", -1.0)
    await until(backend.executes.is_set)

    other = ask(server, "b")
    await until(lambda: any(each.state == "UNLOADING" for each in server.manager.versions()))
    late = ask(server, "a", 5.0)
    assert backend.loads == ["a"]
    backend.released.set()

    assert (await running).outputs[0].array.tolist() == [-2.0]
    assert (await other).outputs[0].array.tolist() == [2.0]
    assert (await late).outputs[0].array.tolist() == [10.0]
    assert backend.loads == ["a", "b", "a"]
    assert backend.most <= 3500


async def test_a_gpu_has_a_budget_of_its_own(serve, models, backend, ask):
    for name in ABCD:
        models.write(name, "1000 gpu")
    models.write("host", 3400)
    server = await serve(memory_budget=["3500", "gpu0:2K"])

    await answers(server, ask, "host", "a", "b", "c")

    assert loaded(server) == ["b", "c", "host"]
    assert account(server).used() == {"host": 3400, "gpu0": 2000}


async def test_models_of_the_start_that_do_not_fit_are_refused(serve, models, states):
    for name in ABCD:
        models.write(name, load_on_request="false")

    server = await serve()

    found = await states(server)
    assert sorted(each.split()[0] for each in found.values()) == [*["READY"] * 3, "UNAVAILABLE"]
    assert any("no memory to load" in each for each in found.values())


async def test_without_a_budget_models_load_on_request_and_stay(serve, models, ask):
    for name in ABCD:
        models.write(name, 10**9)
    server = await serve(memory_budget=[])

    await answers(server, ask, *ABCD)

    assert loaded(server) == list(ABCD)


async def test_a_model_that_uses_none_of_this_is_served_as_before(serve, models, ask):
    models.write("a")
    server = await serve(memory_budget=[], load_on_request=False)

    await answers(server, ask, "a")

    chain = server.manager.resolve("a").chain
    assert [type(each).__name__ for each in chain.handlers] == ["SingleBatcher"]


# ensembles -------------------------------------------------------------------------


async def test_an_ensemble_loads_all_its_steps_for_a_request(serve, models, backend, ask):
    models.write("a")
    models.write("b")
    models.ensemble("e", "a", "b")
    server = await serve()
    assert backend.loads == []
    assert not server.models.signature("e").decoupled

    response = await ask(server, "e", 1.0)

    assert response.outputs[0].array.tolist() == [4.0]
    assert sorted(backend.loads) == ["a", "b"]


async def test_two_ensembles_that_do_not_fit_together_take_turns(serve, models, backend, ask):
    for name in ABCD:
        models.write(name, 1700)
    models.ensemble("e", "a", "b")
    models.ensemble("f", "c", "d")
    server = await serve()

    replies = [ask(server, name, 1.0) for _ in range(5) for name in ("e", "f")]
    values = [(await reply).outputs[0].array.tolist() for reply in replies]
    await asyncio.sleep(0)
    again = await ask(server, "e", 1.0)

    assert values == [[4.0]] * 10
    assert again.outputs[0].array.tolist() == [4.0]
    assert backend.most <= 3500


async def test_an_ensemble_with_a_running_request_keeps_its_steps(serve, models, backend, ask):
    models.write("a", 1000)
    models.write("b", 1000)
    models.ensemble("e", "a", "b")
    models.write("c", 2500)
    server = await serve()
    running = ask(server, "e", -1.0)
    await until(backend.executes.is_set)

    other = ask(server, "c")
    await asyncio.sleep(0.1)
    assert {"a", "b"} <= set(loaded(server))
    backend.released.set()

    assert (await running).outputs[0].array.tolist() == [-4.0]
    assert (await other).outputs[0].array.tolist() == [2.0]
    assert backend.most <= 3500


async def test_a_pinned_ensemble_pins_its_steps(serve, models, ask):
    models.write("a")
    models.write("b")
    models.ensemble("e", "a", "b", pin="true")
    models.write("c")
    models.write("d")
    server = await serve()

    await answers(server, ask, "c")
    assert (await ask(server, "e", 1.0)).outputs[0].array.tolist() == [4.0]
    await answers(server, ask, "d", "c", "d")

    assert {"a", "b"} <= set(loaded(server))


# the account -----------------------------------------------------------------------


async def test_the_account_tells_budget_use_and_each_version(serve, models, ask):
    models.write("a", priority="2")
    models.write("b")
    server = await serve()
    await answers(server, ask, "a")

    (found,) = await server.control.areas["model_memory"].account()

    assert found["budget"] == {"host": 3500}
    assert found["used"] == {"host": 1000}
    of_a, of_b = found["models"]
    assert (of_a["name"], of_a["state"], of_a["bytes"]) == ("a", "loaded", {"host": 1000})
    assert (of_a["source"], of_a["priority"]) == ("backend", 2)
    assert (of_b["state"], of_b["reason"]) == ("out", "unloaded: until a request")


async def test_metrics_count_loads_unloads_refusals_and_waits(serve, models, ask):
    for name in ABCD:
        models.write(name)
    models.write("huge", 5000)
    server = await serve()
    await answers(server, ask, *ABCD)
    with pytest.raises(CoreError):
        await ask(server, "huge")

    families = {each.name: each.samples for each in server.control.health.metrics_here()}

    def value(name, **labels):
        return sum(
            sample.value
            for sample in families[name]
            if {**sample.labels, **labels} == sample.labels and sample.suffix in ("", "_count")
        )

    assert value("core_model_memory_bytes", device="host") == 3000
    assert value("core_memory_budget_bytes") == 3500
    assert value("core_model_loads_on_request", result="success") == 4
    assert value("core_model_loads_on_request", result="failure", model="huge") == 1
    assert value("core_model_evictions", reason="memory", model="a") == 1
    assert value("core_model_memory_refusals", model="huge") == 1
    assert value("core_model_load_wait_seconds", model="b") == 1


async def test_an_invalid_budget_stops_the_start(serve, models):
    with pytest.raises(CoreError, match="--memory-budget: 'much' is no size"):
        await serve(memory_budget=["much"])


async def test_a_wrong_parameter_fails_the_model_by_name(serve, models, states):
    models.write("a", pin="perhaps")

    server = await serve()

    assert "parameter memory.pin is 'perhaps'" in (await states(server))["a"]
