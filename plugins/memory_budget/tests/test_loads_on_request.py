"""A server whose models are loaded by requests, and unloaded when they are idle or an operator says so."""

import asyncio
import threading
import time

import core_memory_budget as plugin
import numpy as np
import pytest

from core.errors import CoreError, DeadlineExceeded, Kind
from core.request import InferenceRequest, RequestedOutput
from core.tensor import Tensor

from .conftest import account, answers, loaded, until


async def test_nothing_is_loaded_before_the_first_request(serve, models, backend, states):
    models.write("a")

    server = await serve()

    assert backend.loads == []
    assert await states(server) == {"a": "UNAVAILABLE unloaded: until a request"}
    assert await server.control.health.ready()
    assert await server.control.health.model_ready("a")
    assert server.models.metadata("a")["inputs"] == [
        {"name": "x", "datatype": "FP32", "shape": [1]}
    ]
    assert server.models.metadata("a")["versions"] == ["1"]
    assert server.models.config_json("a")["name"] == "a"
    assert backend.loads == []


async def test_many_requests_share_one_load(serve, models, backend, ask):
    models.write("a")
    backend.gates["a"] = threading.Event()
    server = await serve()

    replies = [ask(server, "a", number) for number in range(20)]
    await until(backend.waits.is_set)
    replies += [ask(server, "a", number) for number in range(20, 30)]
    assert await server.control.health.ready()
    assert server.models.metadata("a")["name"] == "a"
    backend.gates["a"].set()
    values = [(await reply).outputs[0].array[0] for reply in replies]

    assert values == [2 * number for number in range(30)]
    assert backend.loads == ["a"]


async def test_a_request_that_does_not_fit_the_model_is_refused_without_a_load(
    serve, models, backend, ask
):
    models.write("a")
    server = await serve()

    with pytest.raises(CoreError, match="unexpected inference output 'z'"):
        ask(server, "a", outputs=(RequestedOutput("z"),))

    assert backend.loads == []


async def test_an_unknown_model_is_unknown_and_an_unknown_version_too(serve, models, ask):
    models.write("a")
    server = await serve()

    for name, version in (("nothing", -1), ("a", 7)):
        with pytest.raises(CoreError) as error:
            ask(server, name, model_version=version)
        assert error.value.kind is Kind.NOT_FOUND


async def test_a_load_that_fails_tells_all_that_wait_and_the_server_stays_ready(serve, models, ask):
    models.write("a", "broken", estimate="1000")
    server = await serve()

    for reply in [ask(server, "a") for _ in range(3)]:
        with pytest.raises(CoreError, match="the file is broken") as error:
            await reply
        assert error.value.kind is Kind.UNAVAILABLE

    assert account(server).used() == {}
    assert await server.control.health.ready()
    assert not await server.control.health.model_ready("a")


async def test_a_model_that_failed_is_loaded_once_its_file_is_right(
    serve, models, ask, monkeypatch
):
    monkeypatch.setattr("core_memory_budget.waiting.FIRST_PAUSE_S", 0.0)
    models.write("a", "broken", estimate="1000")
    server = await serve()
    with pytest.raises(CoreError):
        await ask(server, "a")

    models.write("a")

    await answers(server, ask, "a")


async def test_the_deadline_passes_while_the_model_loads_and_the_load_goes_on(
    serve, models, backend, ask
):
    models.write("a")
    backend.gates["a"] = threading.Event()
    server = await serve()

    with pytest.raises(DeadlineExceeded):
        await ask(server, "a", deadline_ns=time.monotonic_ns() + 500_000_000)
    backend.gates["a"].set()
    await until(lambda: loaded(server) == ["a"])

    await answers(server, ask, "a")
    assert backend.loads == ["a"]


async def test_the_model_that_another_model_asks_for_is_loaded(serve, models, backend, ask):
    """What BLS does: signature, then a request inside of the server."""
    models.write("a")
    server = await serve()

    assert not server.models.signature("a").decoupled
    request = InferenceRequest("a", {"x": Tensor.of("x", np.array([2], np.float32))})
    response = await server.models.infer_step(request)

    assert response.outputs[0].array.tolist() == [4.0]


# idle -----------------------------------------------------------------------------


async def test_a_model_without_requests_is_unloaded_and_comes_back(
    serve, models, backend, ask, states
):
    models.write("a", idle_secs="0.2")
    server = await serve()
    await answers(server, ask, "a")

    await until(lambda: backend.held == 0)
    await until(lambda: not account(server).entries)

    assert await states(server) == {"a": "UNAVAILABLE unloaded: idle"}
    await answers(server, ask, "a")


async def test_requests_keep_a_model_from_being_idle(serve, models, backend, ask):
    models.write("a", idle_secs="0.3")
    server = await serve()

    for _ in range(10):
        await answers(server, ask, "a")
        await asyncio.sleep(0.1)

    assert backend.loads == ["a"]


# operators -------------------------------------------------------------------------


async def test_explicit_mode_serves_models_on_request_and_no_others(serve, models, backend, ask):
    models.write("a")
    models.write("b", load_on_request="false")
    models.write("named")
    server = await serve(model_control_mode="explicit", load_model=["named"])

    assert backend.loads == ["named"]
    await answers(server, ask, "a")
    with pytest.raises(CoreError) as error:
        ask(server, "b")
    assert error.value.kind is Kind.NOT_FOUND


async def test_an_operator_who_unloads_a_model_ends_its_loads_on_request(serve, models, ask):
    models.write("a")
    server = await serve(model_control_mode="explicit")
    await answers(server, ask, "a")

    await server.control.repository.unload("a")
    with pytest.raises(CoreError):
        ask(server, "a")
    await server.control.repository.load("a", {})

    await answers(server, ask, "a")


async def test_an_operator_may_unload_a_model_that_is_out(serve, models, ask, states):
    models.write("a")
    server = await serve(model_control_mode="explicit")

    await server.control.repository.unload("a")

    with pytest.raises(CoreError):
        ask(server, "a")
    assert await states(server) == {"a": "UNAVAILABLE unloaded"}


async def test_a_reload_meets_a_load_on_request(serve, models, backend, ask):
    models.write("a")
    backend.gates["a"] = threading.Event()
    server = await serve(model_control_mode="explicit")
    waiting = ask(server, "a")
    await until(backend.waits.is_set)

    models.write("a", 1500)
    reload = asyncio.create_task(server.control.repository.load("a", {}))
    await asyncio.sleep(0.05)
    backend.gates["a"].set()

    assert (await waiting).outputs[0].array.tolist() == [2.0]
    await reload
    await answers(server, ask, "a")
    await until(lambda: account(server).used() == {"host": 1500})
    assert backend.held == 1500


async def test_a_reload_that_does_not_fit_beside_the_old_version_is_refused(
    serve, models, backend, ask
):
    models.write("a", 2000)
    server = await serve(model_control_mode="explicit", memory_wait_secs=2.0)
    await answers(server, ask, "a")

    models.write("a", 2500)
    with pytest.raises(CoreError, match="no memory to load 'a'"):
        await server.control.repository.load("a", {})

    await answers(server, ask, "a")
    assert backend.held == 2000


async def test_polling_does_not_load_what_is_out_and_a_request_gets_the_new_file(
    serve, models, backend, ask
):
    models.write("a")
    server = await serve(model_control_mode="poll", repository_poll_secs=0.05)
    await answers(server, ask, "a")
    await plugin._governors[id(server.models)].reservations.rest("a", "unloaded: memory", "memory")

    models.write("a", 2000)
    models.write("new")
    await server.manager.poll()
    await asyncio.sleep(0.3)

    assert backend.loads == ["a"]
    await answers(server, ask, "a", "new")
    assert account(server).used() == {"host": 3000}
