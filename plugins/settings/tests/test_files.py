"""Settings in files: written after a change, read at the next load."""

import asyncio
import json

import pytest
from core_settings.state import KEPT, State

from .conftest import BATCHING, CONFIG, area, delay

BESIDE = "configs/settings.json"


def stored(path):
    return json.loads(path.read_text())


async def test_a_change_is_written_beside_the_configuration_and_read_by_the_next_server(
    models, serve
):
    models.write()
    server = await serve(settings_write=True)
    path = models.path / "m" / BESIDE

    found = await area(server).set("m", delay(7))

    assert found["written"] == str(path)
    assert stored(path)["settings"] == delay(7)
    assert path.stat().st_mode & 0o777 == 0o644
    assert area(server).get("m")["lasting"] is True

    plain = await serve()
    assert (area(plain).get("m")["number"], area(plain).get("m")["lasting"]) == (0, False)
    other = await serve(settings_read=True)
    found = area(other).get("m")
    assert (found["number"], found["settings"]) == (1, delay(7))
    assert found["history"] == area(server).get("m")["history"]
    assert other.models.config("m").dynamic_batching.max_queue_delay_microseconds == 7
    assert (await area(other).set("m", delay(8)))["number"] == 2


async def test_a_written_file_is_no_reason_to_load_again(models, serve):
    models.write()
    server = await serve(settings_write=True, model_control_mode="poll", load_model=[])
    before = server.models.endpoint("m")

    await area(server).set("m", delay(7))
    await server.control.repository.poll()

    assert server.models.endpoint("m") is before


async def test_files_in_a_folder_of_their_own(models, serve, tmp_path):
    models.write()
    folder = tmp_path / "settings"
    folder.mkdir()
    server = await serve(settings_write=True, settings_folder=str(folder))

    await area(server).set("m", delay(7))
    await area(server).set("m", delay(8))

    assert [each.name for each in folder.iterdir()] == ["m.json"]
    assert stored(folder / "m.json")["number"] == 2
    assert not (models.path / "m" / "configs").exists()


async def test_a_file_that_a_person_writes(models, serve):
    models.write()
    server = await serve(settings_read=True)
    path = models.path / "m" / BESIDE
    path.parent.mkdir()
    path.write_text(json.dumps({"settings": delay(9)}))
    assert area(server).get("m")["number"] == 0  # no load since

    models.write(config=CONFIG + BATCHING + 'parameters { key: "a" }')
    await server.control.repository.load("m", {})

    found = area(server).get("m")
    assert (found["number"], found["settings"]) == (1, delay(9))
    assert (found["history"][0]["operation"], found["history"][0]["caller"]) == ("read", "the file")

    await area(server).set("m", delay(10))  # not written: the file is known, and older
    models.write(config=CONFIG + BATCHING + 'parameters { key: "b" }')
    await server.control.repository.load("m", {})
    assert area(server).get("m")["settings"] == delay(10)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("{", "is not JSON"),
        ("[]", 'expected an object with "settings"'),
        ('{"settings": {"x": 1}}', 'has no field "x"'),
        ('{"settings": {}, "number": "a"}', "number is 'a', expected a whole number from 0"),
        ('{"settings": {}, "history": [1]}', "history is no list of objects"),
        (
            '{"settings": {}, "number": 1, "history": [{"number": 1, "settings": {"x": 1}}]}',
            'history[0].settings has no field "x"',
        ),
        (
            '{"settings": {}, "history": [{"number": 1, "settings": {"rate_limiter": 3}}]}',
            "history[0].settings: rate_limiter is 3",
        ),
    ],
)
async def test_a_wrong_file_fails_the_load(models, serve, text, error):
    models.write()
    path = models.path / "m" / BESIDE
    path.parent.mkdir()
    path.write_text(text)

    server = await serve(settings_read=True)

    (entry,) = server.manager.index()
    assert entry["state"] == "UNAVAILABLE"
    assert f"live settings {path}" in entry["reason"] and error in entry["reason"]


async def test_a_file_that_cannot_be_written_is_said_and_the_change_holds(models, serve, caplog):
    models.write()
    (models.path / "m" / "configs").write_text("a file, no folder")
    server = await serve(settings_write=True)

    found = await area(server).set("m", delay(7))

    assert "cannot be written: " in found["not_written"]
    assert found["not_written"] in caplog.text
    assert found["number"] == 1


async def test_a_folder_needs_a_use(models, serve, tmp_path):
    from core_settings.options import SettingsOptions

    from core.errors import CoreError
    from core.options import Options

    options = Options.defaults()
    with pytest.raises(CoreError, match="is no folder"):
        SettingsOptions(settings_folder=str(tmp_path / "no")).check(options)
    with pytest.raises(CoreError, match="needs --settings-write"):
        SettingsOptions(settings_folder=str(tmp_path)).check(options)
    SettingsOptions(settings_folder=str(tmp_path), settings_read=True).check(options)


async def load_again(server, models, mark):
    """Load the model with another configuration, so that it reads its file."""
    models.write(config=CONFIG + BATCHING + f'parameters {{ key: "{mark}" }}')
    await server.control.repository.load("m", {})
    return area(server).get("m")


async def test_an_older_file_is_known_and_an_edited_one_is_taken(models, serve):
    models.write()
    server = await serve(settings_read=True, settings_write=True)
    path = models.path / "m" / BESIDE
    await area(server).set("m", delay(7))
    older = path.read_text()
    await area(server).set("m", delay(8))

    path.write_text(older)  # a worker that was late
    found = await load_again(server, models, "a")
    assert (found["number"], found["settings"]) == (2, delay(8))

    path.write_text(json.dumps({**json.loads(older), "settings": delay(9)}))
    found = await load_again(server, models, "b")
    assert (found["number"], found["settings"]) == (3, delay(9))


def test_a_file_is_older_if_its_number_has_these_settings_or_is_forgotten():
    state = State()
    for us in range(KEPT + 2):
        state = state.after(delay(us), "set", "", {})

    assert state.knows(state)
    assert state.knows(State(5, delay(4))) and not state.knows(State(5, delay(5)))
    assert state.knows(State(1, delay(77)))  # its entry has gone
    assert not state.knows(State(0, delay(4)))
    assert not state.knows(State(KEPT + 3, delay(4)))


async def test_history_is_there_after_a_reset_and_a_restart(models, serve):
    models.write()
    server = await serve(settings_write=True)
    await area(server).set("m", delay(7))
    before = await area(server).reset("m")

    other = await serve(settings_read=True)

    found = area(other).get("m")
    assert (found["number"], found["settings"]) == (2, {})
    assert found["history"] == before["history"]
    assert (await area(other).rollback("m", 1))["settings"] == delay(7)


async def test_the_file_has_a_change_of_another_worker_that_came_during_the_write(
    models, serve, monkeypatch
):
    models.write()
    server = await serve(settings_write=True)
    files, loop = area(server)._settings.files, asyncio.get_running_loop()
    write = files.write

    def late(source, state):
        if state.number == 1:
            other = state.after(delay(8), "set", "", {})
            asyncio.run_coroutine_threadsafe(area(server).put("m", other.as_json()), loop).result(5)
            write(source, other)
        return write(source, state)

    monkeypatch.setattr(files, "write", late)
    await area(server).set("m", delay(7))

    assert stored(models.path / "m" / BESIDE)["number"] == 2


async def test_a_file_has_as_much_history_as_can_be_read_again(models, serve, monkeypatch):
    monkeypatch.setattr("core_settings.files._MOST_BYTES", 3000)
    models.write()
    server = await serve(settings_write=True)
    for us in range(20):
        found = await area(server).set("m", delay(us))

    text = (models.path / "m" / BESIDE).read_bytes()
    kept = json.loads(text)["history"]
    assert 2000 < len(text) <= 3000
    assert kept == list(found["history"])[-len(kept) :]

    monkeypatch.setattr("core_settings.files._MOST_BYTES", 50)
    found = await area(server).set("m", delay(20))
    assert "cannot be written: it would have more than 50 bytes" in found["not_written"]
