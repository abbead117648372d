"""Repository agents during loads and unloads: their calls, their order, and their folders."""

import asyncio
import hashlib
import shutil
import sys
import threading

import pytest

import core
from core import plugins
from core.errors import Kind, internal
from core.lifecycle import shutdown
from core.repository.agents import known
from core.repository.folder import FolderRepository
from core.repository.source import ModelDirectory

from .test_override import as_json

ACTIONS = ("load", "load_complete", "load_fail", "unload", "unload_complete")


class Recorder(core.RepositoryAgent):
    """Records its calls; raises if a parameter requires it. Has the names first, second, tenfold.

    tenfold makes a separate folder, in which the factor of each version has one 0 more.
    """

    def __init__(self, name, notes):
        self.name, self.notes = name, notes

    def act(self, action, model):
        self.notes.append(f"{self.name} {action}")
        if model.parameters.get("raise") == action:
            raise ValueError(f"no {action} today")


for action in ACTIONS:
    setattr(Recorder, action, lambda self, model, action=action: self.act(action, model))


class Tenfold(Recorder):
    def load(self, model):
        folder = model.acquire()
        shutil.copytree(model.location, folder, dirs_exist_ok=True)
        for file in folder.glob("*/model.txt"):
            file.write_text(file.read_text() + "0")
        model.update(folder)
        self.folder = folder
        self.act("load", model)


class Plugin:
    def __init__(self, notes):
        self.agents = {name: Recorder(name, notes) for name in ("first", "second")}
        self.agents["tenfold"] = Tenfold("tenfold", notes)

    @core.hookimpl
    def core_open_repository_agent(self, name):
        return self.agents.get(name)


@pytest.fixture
def notes():
    return []


@pytest.fixture
def plugin(notes, monkeypatch):
    monkeypatch.setattr(known, "_found", {})
    plugin = Plugin(notes)
    plugins.hooks().register(plugin)
    yield plugin
    plugins.hooks().unregister(plugin)


def agents(*named):
    """Configuration text for agents: names, or (name, {parameter: value})."""
    found = ""
    for each in named:
        name, parameters = (each, {}) if isinstance(each, str) else each
        said = "".join(f'parameters {{ key: "{k}" value: "{v}" }}' for k, v in parameters.items())
        found += f'{{ name: "{name}" {said} }},'
    return f"model_repository_agents {{ agents [ {found.rstrip(',')} ] }}"


@pytest.fixture
async def written(folder, started, config, plugin):
    """Write m, which doubles, with these agents; the manager that has not loaded it."""

    async def written(*named, text="2"):
        folder.model("m", config=config + agents(*named), text=text)
        return await started()

    return written


async def test_agents_are_called_in_their_order_and_back(written, notes):
    manager = await written("first", "second")

    await manager.load("m", {})
    assert notes == ["first load", "second load", "second load_complete", "first load_complete"]
    del notes[:]
    await manager.unload("m")
    await manager.settled()

    assert notes == [
        "first unload",
        "second unload",
        "second unload_complete",
        "first unload_complete",
    ]


async def test_a_load_without_changes_calls_no_agent(written, notes):
    manager = await written("first")
    await manager.load("m", {})
    del notes[:]

    await manager.load("m", {})

    assert notes == []


async def test_unload_comes_before_running_requests_end_and_unload_complete_after(
    written, notes, backend
):
    manager = await written("first")
    await manager.load("m", {})
    backend.go.clear()
    reply = manager.ask("m")
    del notes[:]

    await manager.unload("m")
    while not notes:
        await asyncio.sleep(0.001)  # agents run on real threads
    assert notes == ["first unload"]
    backend.go.set()
    await reply
    await manager.settled()

    assert notes == ["first unload", "first unload_complete"]


async def test_an_agent_that_raises_fails_the_load_with_its_error(written, notes, refusal):
    manager = await written("first", ("second", {"raise": "load"}))

    error = await refusal(manager.load("m", {}))

    assert error.kind is Kind.INTERNAL
    assert error.message == (
        "failed to load 'm', failed to poll from model repository: repository agent 'second' refuses model "
        "'m': ValueError: no load today\n"
    )
    assert notes == ["first load", "second load", "second load_fail", "first load_fail"]
    [entry] = manager.index(False)
    assert entry["state"] == "UNAVAILABLE"
    assert entry["reason"].startswith("repository agent 'second' refuses")
    assert manager.table()[0][2].startswith("Not loaded: repository agent 'second' refuses")


async def test_an_agent_that_exits_refuses_the_model(written, plugin, refusal):
    plugin.agents["first"].load = lambda model: sys.exit("over")
    manager = await written("first")

    error = await refusal(manager.load("m", {}))

    assert "SystemExit: over" in error.message
    [entry] = manager.index(False)
    assert "SystemExit: over" in entry["reason"]


async def test_a_refusal_of_an_agent_is_a_failed_load(written, refusal):
    manager = await written(("first", {"raise": "load"}))

    await refusal(manager.load("m", {}))

    [(_, _, results)] = manager.results()
    assert results["loads", "failure"] == 1 and results["loads", "success"] == 0


async def test_a_model_that_an_agent_refuses_here_is_served_by_no_worker(written, refusal):
    manager = await written(("first", {"raise": "load"}))
    said = []

    async def agree(model, objection):
        said.append((model, objection))
        return objection

    manager._host._agree = agree
    await refusal(manager.load("m", {}))

    [(model, objection)] = said
    assert model == "m" and "repository agent 'first' refuses" in objection


async def test_files_that_cannot_be_fetched_for_agents_are_the_reason_of_the_index(
    written, notes, monkeypatch, refusal
):
    class Away(ModelDirectory):
        def fetch(self, versions):
            raise internal("the store is away")

    monkeypatch.setattr(FolderRepository, "directory", lambda self, name: Away(self._path / name))
    manager = await written("first")

    assert "the store is away" in (await refusal(manager.load("m", {}))).message

    [entry] = manager.index(False)
    assert entry["state"] == "UNAVAILABLE" and entry["reason"] == "the store is away"
    assert notes == []


async def test_agents_see_the_failure_of_a_load(written, notes, refusal):
    manager = await written("first", "second", text="fail: broken")

    await refusal(manager.load("m", {}))
    await manager.settled()

    assert notes == ["first load", "second load", "second load_fail", "first load_fail"]


@pytest.mark.parametrize("action", ["load_complete", "unload", "unload_complete"])
async def test_later_errors_of_an_agent_are_only_logged(written, notes, action, caplog):
    manager = await written(("first", {"raise": action}), "second")

    await manager.load("m", {})
    assert await manager.factor() == 2
    await manager.unload("m")
    await manager.settled()

    assert f"repository agent 'first' failed in {action} of model 'm'" in caplog.text
    assert len(notes) == 8


async def test_an_agent_that_hangs_does_not_hold_up_the_end(
    written, notes, plugin, ticker, monkeypatch
):
    go = threading.Event()
    agent = plugin.agents["first"]
    agent.unload = lambda model: go.wait(60) and notes.append("first unload")
    monkeypatch.setattr(shutdown, "_REMOVE_S", 0.1)
    manager = await written("first")
    await manager.load("m", {})
    ticker.flows = True

    left = await asyncio.wait_for(manager.stop(1), 30)

    assert left == 1 and "first unload" not in notes
    go.set()
    await manager.settled()


async def test_a_new_location_is_loaded_until_the_model_is_unloaded(written, plugin):
    manager = await written("tenfold")

    await manager.load("m", {})

    folder = plugin.agents["tenfold"].folder
    assert await manager.factor() == 20
    assert manager.resolve("m").directory == folder
    await manager.unload("m")
    await manager.settled()
    assert not folder.exists()


async def test_an_agent_sees_the_files_of_the_one_before_it(written):
    manager = await written("tenfold", "first", "tenfold")

    await manager.load("m", {})

    assert await manager.factor() == 200


async def test_folders_of_a_failed_load_are_removed(written, plugin, refusal):
    manager = await written("tenfold", text="fail: ")

    await refusal(manager.load("m", {}))
    await manager.settled()

    assert not plugin.agents["tenfold"].folder.exists()


async def test_a_reload_that_an_agent_refuses_keeps_the_serving_version(
    written, folder, notes, refusal
):
    manager = await written("tenfold")
    await manager.load("m", {})
    config = folder.path / "m" / "config.pbtxt"
    config.write_text(config.read_text().replace('"tenfold"', '"tenfold" }, { name: "nobody"'))

    error = await refusal(manager.load("m", {}))

    assert "unable to find repository agent 'nobody'" in error.message
    assert await manager.factor() == 20
    assert manager.entries("m") == {1: "READY"}


async def test_a_reload_treats_the_new_files_and_releases_the_old_ones(
    written, folder, plugin, notes
):
    manager = await written("tenfold")
    await manager.load("m", {})
    old = plugin.agents["tenfold"].folder
    del notes[:]
    (folder.path / "m" / "1" / "model.txt").write_text("3")

    await manager.load("m", {})
    await manager.settled()

    assert await manager.factor() == 30
    assert not old.exists()
    assert sorted(notes) == sorted(f"tenfold {each}" for each in ACTIONS if each != "load_fail")


async def test_a_version_that_stays_keeps_its_agents(written, folder, notes, config):
    config += 'version_policy { all { } } model_repository_agents { agents [ { name: "first" } ] }'
    manager = await written("first")
    (folder.path / "m" / "config.pbtxt").write_text(config)
    await manager.load("m", {})
    one = manager.resolve("m", 1)
    del notes[:]
    folder.version("m", 2, "3")

    await manager.load("m", {})

    assert manager.resolve("m", 1) is one
    assert await manager.factor(version=2) == 3
    assert notes == ["first load", "first load_complete"]
    await manager.unload("m")
    await manager.settled()
    assert notes.count("first unload_complete") == 2


async def test_files_of_a_request_go_through_agents(started, plugin, notes):
    manager = await started()
    named = {"agents": [{"name": "tenfold"}]}

    await manager.load(
        "n", {"config": as_json(model_repository_agents=named), "file:1/model.txt": b"4"}
    )
    given = manager.resolve("n").source.directory.origin.path

    assert await manager.factor("n") == 40
    assert (given / "1" / "model.txt").read_text() == "4"
    await manager.unload("n")
    await manager.settled()
    assert not given.exists()


async def test_a_poll_tries_again_when_files_change_and_not_before(
    folder, manage, ticker, config, plugin, notes
):
    digest = hashlib.md5(b"3").hexdigest()
    named = agents("first", ("checksum", {"MD5:1/model.txt": digest}))
    folder.model("m", config=config + named, text="2")
    manager = manage("poll", exit_on_error=False)
    await manager.start()
    await ticker.tick()
    assert notes == ["first load", "first load_fail"]

    (folder.path / "m" / "1" / "model.txt").write_text("3")
    await ticker.tick()

    assert await manager.factor() == 3


# which agent a name means ----------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder of agents."""
    monkeypatch.setattr(known, "_found", {})
    (tmp_path / "agents" / "mine").mkdir(parents=True)
    return tmp_path / "agents"


AGENT = """
import core

class Mine(core.RepositoryAgent):
    def load(self, model):
        raise core.CoreError(core.Kind.INVALID, f"{model.name} is not for us")

agent = Mine()
"""


async def test_an_agent_may_be_a_folder(place, folder, started, config, refusal):
    (place / "mine" / "agent.py").write_text(AGENT)
    folder.model("m", config=config + agents("mine"), text="2")
    manager = await started(repoagent_directory=str(place))

    message = (await refusal(manager.load("m", {}))).message

    assert "repository agent 'mine' refuses model 'm': m is not for us" in message
    assert known.agents_used() == [("mine", str(place / "mine" / "agent.py"))]


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        (
            "libtritonrepoagent_mine.so",
            "",
            "is a shared library made for Triton, which this server cannot call",
        ),
        ("agent.py", "1 / 0", "cannot be imported, or has no `agent`: ZeroDivisionError"),
        ("agent.py", "", "cannot be imported, or has no `agent`: AttributeError"),
        ("agent.py", "agent = 5", "is a int, not a core.RepositoryAgent"),
        (
            "other.py",
            "",
            "unable to find repository agent 'mine': it is not built in, no plugin brings it",
        ),
    ],
)
async def test_a_hook_result_of_another_type_is_refused(
    place, folder, started, config, refusal, file, text, expected
):
    (place / "mine" / file).write_text(text)
    folder.model("m", config=config + agents("mine"), text="2")
    manager = await started(repoagent_directory=str(place))

    assert expected in (await refusal(manager.load("m", {}))).message


@pytest.mark.parametrize("name", ["../mine", "..", "/etc", ""])
def test_a_name_stays_below_the_folder_of_agents(place, name):
    (place.parent / "mine").mkdir()
    (place.parent / "mine" / "agent.py").write_text(AGENT)
    (place / "agent.py").write_text(AGENT)

    with pytest.raises(core.CoreError, match="unable to find repository agent"):
        known.find_agent(name, str(place))
