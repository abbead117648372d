"""Explicit unload: its response, the ended and the continuing requests."""

import gc
import weakref


async def test_an_unloaded_model_is_unavailable_with_the_reason_unloaded(folder, started, config):
    folder.model("m", config=config, text="2")
    manager = await started(load_model=["m"])

    await manager.unload("m")
    await manager.settled()

    assert manager.index(False) == [
        {"name": "m", "version": "1", "state": "UNAVAILABLE", "reason": "unloaded"}
    ]
    assert manager.all_ready()


async def test_unload_answers_while_the_last_request_still_runs(folder, started, config, backend):
    folder.model("m", config=config, text="2")
    manager = await started(load_model=["m"])
    backend.go.clear()
    reply = manager.ask()

    await manager.unload("m")

    assert manager.entries("m") == {1: "UNLOADING"}
    assert "unload m:1" not in backend.calls
    backend.go.set()
    assert (await reply).output("y").array[0] == 2
    await manager.settled()
    assert manager.entries("m") == {1: "UNAVAILABLE"}


async def test_a_model_can_be_loaded_again_while_it_still_drains(folder, started, config, backend):
    folder.model("m", config=config, text="2")
    manager = await started(load_model=["m"])
    backend.go.clear()
    reply = manager.ask()
    await manager.unload("m")

    await manager.load("m", {})

    assert manager.entries("m") == {1: "READY"}
    backend.go.set()
    assert (await reply).output("y").array[0] == 2
    await manager.settled()
    assert await manager.factor() == 2


async def test_an_unload_that_raises_ends_all_the_same(folder, started, config, backend):
    folder.model("m", config=config, text="close: stuck")
    manager = await started(load_model=["m"])

    await manager.unload("m")
    await manager.settled()

    assert manager.entries("m") == {1: "UNAVAILABLE"}
    assert backend.calls[-1] == "close backend"


async def test_unload_of_an_unknown_model_succeeds(folder, started, config):
    folder.model("m", config=config)
    manager = await started()

    await manager.unload("absent")
    await manager.unload("m")
    await manager.unload("../m")

    assert manager.index(False) == [{"name": "m"}]


async def test_unload_of_a_failed_model_makes_the_server_ready_again(
    folder, started, config, refusal
):
    folder.model("m", config=config, text="fail")
    folder.model("broken", config="{")
    manager = await started()
    await refusal(manager.load("m", {}))
    await refusal(manager.load("broken", {}))
    assert not manager.all_ready()

    await manager.unload("m")
    await manager.unload("broken")

    assert manager.reason("m") == "unloaded"
    assert manager.all_ready()


async def test_an_unloaded_model_holds_no_memory(folder, started, config, backend, monkeypatch):
    models = weakref.WeakSet()
    load = backend.model.load

    def remember(self):
        models.add(self)
        load(self)

    monkeypatch.setattr(backend.model, "load", remember)
    folder.model("m", config=config, text="2")
    manager = await started(load_model=["m"])
    await manager.factor()
    assert len(models) == 1

    await manager.unload("m")
    await manager.settled()
    gc.collect()

    assert not models
