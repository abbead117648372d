"""Start, end, and the models of folders, of a server in this process."""

import asyncio
import threading

import numpy as np
import pytest
from flow.in_process.conftest import PATIENCE_S, ROW, Asking, until

import core

ENSEMBLE = """
platform: "ensemble"
input [ { name: "a" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "b" data_type: TYPE_FP32 dims: [ -1 ] } ]
ensemble_scheduling { step [ {
  model_name: "double" model_version: -1
  input_map { key: "x" value: "a" } output_map { key: "y" value: "b" }
} ] }
"""


def write(folder, name, config):
    (folder / name / "1").mkdir(parents=True)
    (folder / name / "config.pbtxt").write_text(config)


@pytest.fixture
def ensemble(tmp_path):
    """A repository with an ensemble of a model called double."""
    write(tmp_path, "twice", ENSEMBLE)
    return tmp_path


def threads():
    return {each for each in threading.enumerate() if each is not threading.current_thread()}


def test_a_server_leaves_no_thread(x):
    before = threads()

    with core.Server() as server:
        server.bind("one", lambda x: x, instances=3, **ROW)
        server.infer("one", {"x": x})
        assert threads() > before

    until(lambda: threads() <= before)


def test_a_server_that_is_not_started_raises_an_error(x):
    server = core.Server()

    with pytest.raises(core.CoreError, match=r"not started: call start\(\)") as refusal:
        server.infer("m", {"x": x})
    assert refusal.value.kind is core.Kind.UNAVAILABLE
    assert not server.ready()
    server.stop()  # does nothing


def test_a_server_is_started_once_and_stopped_once(x):
    server = core.Server().start()
    assert server.start() is server
    assert server.ready()

    server.stop()
    server.stop()

    for call in (
        lambda: server.infer("m", {"x": x}),
        lambda: next(server.stream("m", {"x": x})),
        lambda: server.bind("m", lambda x: x, **ROW),
        server.index,
        server.start,
    ):
        with pytest.raises(core.CoreError, match="the server is stopped"):
            call()
    assert not server.ready()


def test_several_servers_in_one_process_are_independent(x):
    with core.Server() as one, core.Server() as other:
        one.bind("m", lambda x: x, **ROW)
        other.bind("m", lambda x: -x, **ROW)

        np.testing.assert_array_equal(one.infer("m", {"x": x})["y"], x)
        np.testing.assert_array_equal(other.infer("m", {"x": x})["y"], -x)
        other.unbind("m")
        one.infer("m", {"x": x})


def test_the_stop_waits_for_running_requests(server, gate, x):
    server.bind("gate", gate, **ROW)
    asking = Asking(lambda: server.infer("gate", {"x": x})["y"])
    assert gate.began.wait(PATIENCE_S)
    stopping = Asking(server.stop)
    until(lambda: server._thread is None)

    gate.open()

    np.testing.assert_array_equal(asking.result, x)
    assert stopping.result is None


@pytest.mark.parametrize("kind", ["thread", "async"])
def test_a_running_function_may_call_other_models_until_the_end(server, gate, x, kind):
    def four(x):
        return server.infer("double", {"x": gate(2 * x)})["y"]

    async def four_async(x):
        await asyncio.to_thread(gate, x)
        return (await server.infer_async("double", {"x": 2 * x}))["y"]

    server.bind("double", lambda x: 2 * x, **ROW)
    server.bind("four", four if kind == "thread" else four_async, **ROW)
    asking = Asking(lambda: server.infer("four", {"x": x})["y"])
    assert gate.began.wait(PATIENCE_S)
    stopping = Asking(server.stop)
    until(lambda: server._dispatcher.closed)

    with pytest.raises(core.CoreError, match="the server is stopped"):
        server.infer("double", {"x": x})
    gate.open()

    np.testing.assert_array_equal(asking.result, 4 * x)
    assert stopping.result is None


def test_a_request_that_outlasts_the_stop_gets_an_error(server, gate, x, caplog):
    server.bind("gate", gate, **ROW)
    asking = Asking(lambda: server.infer("gate", {"x": x}))
    assert gate.began.wait(PATIENCE_S)

    server.stop(timeout=0.01)

    assert isinstance(asking.result, core.CoreError)
    assert asking.result.kind is core.Kind.UNAVAILABLE
    assert str(asking.result) == "the server has stopped before the model answered"
    assert "their threads are left behind" in caplog.text


def test_a_busy_thread_of_the_loop_does_not_make_the_stop_fail(server, monkeypatch, caplog):
    monkeypatch.setattr("frontends.in_process.lifetime._EXECUTOR_TIMEOUT_S", 0.01)

    finish, ended = threading.Event(), threading.Event()

    def call():
        finish.wait(PATIENCE_S)
        ended.set()

    async def begin():
        asyncio.get_running_loop().run_in_executor(None, call)

    server._thread.run(begin())

    try:
        server.stop()

        assert not ended.is_set()
        assert "a call still ran 0.01 s after the end" in caplog.text
    finally:
        finish.set()


def test_a_function_on_the_servers_thread_cannot_stop_it(server, x):
    async def stop(x):
        server.stop()

    server.bind("stop", stop, **ROW)

    with pytest.raises(core.CoreError, match="stop waits for the server"):
        server.infer("stop", {"x": x})
    assert server.ready()


def test_wait_ends_with_the_server(server):
    assert not server.wait(timeout=0)
    waiting = Asking(server.wait)

    server.stop()

    assert waiting.result is True


def test_a_model_of_a_folder_is_loaded_and_unloaded(ensemble, x):
    with core.Server(model_repository=ensemble, model_control_mode="explicit") as server:
        server.bind("double", lambda x: 2 * x, **ROW)
        assert not server.ready("twice")

        server.load("twice")
        np.testing.assert_array_equal(server.infer("twice", {"a": x})["b"], 2 * x)
        assert [each["name"] for each in server.index(ready_only=True)] == ["double", "twice"]

        server.unload("twice")
        assert not server.ready("twice")
        assert server.ready("double")


async def test_a_coroutine_loads_and_unloads(ensemble, x):
    async with core.Server(model_repository=ensemble, model_control_mode="explicit") as server:
        server.bind("double", lambda x: 2 * x, **ROW)

        await server.load_async("twice")
        assert (await server.infer_async("twice", {"a": x}))["b"][1] == 2 * x[1]

        await server.unload_async("twice")
        with pytest.raises(core.CoreError, match="failed to load 'nothing'"):
            await server.load_async("nothing")


def test_models_of_folders_follow_the_control_mode_and_functions_do_not(ensemble, x):
    with core.Server(model_repository=ensemble, exit_on_error=False) as server:
        server.bind("double", lambda x: 2 * x, **ROW)

        with pytest.raises(core.CoreError, match="explicit model load / unload is not allowed"):
            server.load("twice")
        assert server.infer("double", {"x": x})["y"][1] == 2


def test_a_function_cannot_have_the_name_of_a_model_in_a_folder(ensemble, x):
    with core.Server(model_repository=ensemble, model_control_mode="explicit") as server:
        with pytest.raises(core.CoreError, match="appears in two or more repositories"):
            server.bind("twice", lambda x: x, **ROW)

        server.bind("double", lambda x: 2 * x, **ROW)
        server.load("twice")
        assert server.ready("twice")


def test_a_folder_cannot_make_a_model_of_a_function_that_is_not_bound(tmp_path):
    write(tmp_path, "m", 'backend: "function"\n' + ENSEMBLE.split("ensemble_scheduling")[0][22:])

    with pytest.raises(core.CoreError, match="failed to load all models"):
        core.Server(model_repository=tmp_path).start()


def test_a_failed_start_leaves_no_threads(ensemble):
    before = threads()
    server = core.Server(model_repository=ensemble)  # there is no model called double

    with pytest.raises(core.CoreError, match="failed to load all models"):
        server.start()

    until(lambda: threads() <= before)
    with pytest.raises(core.CoreError, match="the server is stopped"):
        server.index()
    assert server.wait(timeout=0)
    with pytest.raises(core.CoreError, match="model repository"):
        core.Server(model_repository="/nothing/is/here").start()
    until(lambda: threads() <= before)


def test_the_server_returns_its_metadata(server):
    assert server.metadata()["name"] == "triton"
    assert server.metadata()["version"] == core.__version__
    assert server.statistics() == []
    with pytest.raises(core.CoreError, match="'m' is not found"):
        server.config("m")


def test_backends_are_found_in_their_folder_too(tmp_path):
    folder = tmp_path / "backends" / "parabola"
    folder.mkdir(parents=True)
    (folder / "model.py").write_text("")  # no class: a load of this folder fails
    config = 'backend: "parabola" input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ] '
    config += 'output [ { name: "y" data_type: TYPE_FP32 dims: [ 1 ] } ]'
    write(tmp_path / "models", "m", config)

    def reason(**options):
        options = {"model_repository": tmp_path / "models", "exit_on_error": False, **options}
        with core.Server(**options) as server:
            (entry,) = server.index()
            return entry["reason"]

    assert "no backend named 'parabola'" in reason()
    found = reason(backend_directory=str(tmp_path / "backends"))
    assert "TritonPythonModel" in found and "no backend named" not in found
