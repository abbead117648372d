"""What plugins see and change of loads: states, configurations, repositories."""

import pytest

import core
from core import plugins
from core.errors import CoreError
from core.repository import FolderRepository, ModelDirectory


class Plugin:
    """Sees states; completes models with the file `note`; opens repositories at shelf://."""

    def __init__(self, folder):
        self.seen = []
        self.asked = []
        self.folder = folder
        self.fetched = []
        self.gives = None

    @core.hookimpl
    def core_model_changed(self, model, state, reason):
        self.seen.append((model.name, model.version, state, reason))

    @core.hookimpl
    def core_complete_config(self, config, path):
        self.asked.append((config.name, path.name))
        if not (path / "note").exists():
            return None
        config.max_batch_size = 8
        config.input.add(name="x", data_type=11, dims=[-1])
        config.output.add(name="y", data_type=11, dims=[-1])
        return config if self.gives is None else self.gives

    @core.hookimpl
    def core_open_repository(self, url):
        if not url.startswith("shelf://"):
            return None
        return Shelf(url, self)


class Shelf(FolderRepository):
    """A place elsewhere: its files are brought when a model loads."""

    def __init__(self, url, plugin):
        super().__init__(str(plugin.folder))
        self.location = url
        self._plugin = plugin

    def directory(self, name):
        return Fetched(super().directory(name).path, self._plugin)


class Fetched(ModelDirectory):
    def __init__(self, path, plugin):
        super().__init__(path)
        self._plugin = plugin

    def fetch(self, versions):
        self._plugin.fetched.append(("fetch", self.path.name))

    def remove(self):
        self._plugin.fetched.append(("remove", self.path.name))


@pytest.fixture
def plugin(tmp_path_factory):
    found = Plugin(tmp_path_factory.mktemp("shelf"))
    plugins.hooks().register(found, "test plugin")
    yield found
    plugins.hooks().unregister(found)


async def test_every_state_of_a_version_is_reported(plugin, models, serve):
    models.write("m", "2")
    server = await serve()

    await server.models.load("m", {})
    await server.models.unload("m")
    await server.stop(30)

    assert plugin.seen == [
        ("m", 1, state, "") for state in ("loading", "ready", "unloading", "gone")
    ]


async def test_a_reload_reports_both_versions(plugin, models, serve):
    models.write("m", "2")
    server = await serve()
    await server.models.load("m", {})
    models.write("m", "3", version=2)
    plugin.seen.clear()

    await server.models.load("m", {})
    await server.stop(30)

    told = [(version, state) for _, version, state, _ in plugin.seen]
    assert told[:2] == [(2, "loading"), (2, "ready")]
    assert (1, "gone") in told


async def test_a_failed_load_is_reported_with_its_reason(plugin, models, serve):
    models.write("m", "no number")
    server = await serve()

    with pytest.raises(CoreError):
        await server.models.load("m", {})

    assert [state for *_, state, _ in plugin.seen] == ["loading", "failed"]
    assert "no number" in plugin.seen[-1][3]


async def test_a_plugin_completes_a_configuration_before_the_backend(plugin, models, serve, ask):
    models.write("m", "2", config='backend: "scaler"')
    (models.path / "m" / "1" / "note").touch()
    server = await serve()

    await server.models.load("m", {})

    assert plugin.asked == [("m", "1")]
    assert server.models.config("m").max_batch_size == 8  # the backend's own would be 4


async def test_a_plugin_that_returns_none_leaves_the_model_to_the_backend(plugin, models, serve):
    models.write("m", "2", config='backend: "scaler"')
    server = await serve()

    await server.models.load("m", {})

    assert server.models.config("m").max_batch_size == 4


async def test_without_auto_complete_the_hook_is_not_called(plugin, models, serve):
    models.write("m", "2")
    server = await serve(disable_auto_complete_config=True)

    await server.models.load("m", {})

    assert plugin.asked == []


async def test_a_completion_that_is_none_fails_the_load(plugin, models, serve):
    models.write("m", "2", config='backend: "scaler"')
    (models.path / "m" / "1" / "note").touch()
    plugin.gives = 5
    server = await serve()

    with pytest.raises(CoreError, match="of a plugin returned a int, not a ModelConfig"):
        await server.models.load("m", {})


async def test_a_repository_of_a_plugin_is_read_like_a_folder(plugin, models, serve, ask):
    folder = plugin.folder / "far"
    models.path, before = plugin.folder, models.path
    models.write("far", "5")
    models.path = before
    server = await serve(model_repository=["shelf://here", str(before)])

    await server.models.load("far", {})
    answer = await ask(server, 2.0, "far")

    assert answer.output("y").array.tolist() == [10.0]
    assert folder.exists()
    await server.models.unload("far")
    await server.stop(30)
    assert plugin.fetched == [("fetch", "far"), ("remove", "far")]


async def test_a_hook_result_of_another_type_is_refused(plugin, serve, monkeypatch):
    monkeypatch.setitem(globals(), "Shelf", lambda url, plugin: object())

    with pytest.raises(
        CoreError, match=r"'shelf://x' made a object, not a core\.repository\.Repository"
    ):
        await serve(model_repository=["shelf://x"])
