"""Models whose folders cannot be read: they are in the index with their reason, and others serve."""

import shutil

import pytest

from core.errors import Kind


@pytest.fixture
def models(folder, config):
    for name in ("good", "m"):
        folder.model(name, config=config, text="2")
    (folder.path / "loop").symlink_to("loop")
    shutil.rmtree(folder.path / "m" / "1")
    (folder.path / "m" / "1").symlink_to("1")


def reasons(manager):
    return {each["name"]: each.get("reason", "") for each in manager.index(False)}


@pytest.mark.parametrize("mode", ["none", "poll"])
async def test_the_server_starts_and_the_index_has_the_reason(models, started, mode):
    manager = await started(mode, exit_on_error=False)

    assert await manager.factor("good") == 2.0
    for name in ("loop", "m"):
        assert "Too many levels of symbolic links" in reasons(manager)[name]
    assert not manager.all_ready()


async def test_a_poll_loads_it_when_it_can_be_read(models, started, ticker, folder):
    manager = await started("poll", exit_on_error=False)
    (folder.path / "m" / "1").unlink()
    (folder.path / "m" / "1").mkdir()
    (folder.path / "m" / "1" / "model.txt").write_text("3")

    await ticker.tick()

    assert await manager.factor("m") == 3.0
    assert await manager.factor("good") == 2.0


async def test_a_load_request_gets_the_reason(models, started, refusal):
    manager = await started("explicit", load_model=["good"])

    for name in ("loop", "m"):
        error = await refusal(manager.load(name, {}))
        assert error.kind is Kind.INTERNAL
        assert f"failed to load '{name}'" in error.message
        assert "Too many levels of symbolic links" in error.message
    assert await manager.factor("good") == 2.0


async def test_a_folder_that_vanishes_before_its_load_fails_alone(
    folder, config, backend, started, monkeypatch
):
    for name in ("good", "m"):
        folder.model(name, config=config, text="2")
    note = backend.note

    def vanishing(event, model=None):
        if event == "load" and model.name == "m":
            shutil.rmtree(folder.path / "m")
        note(event, model)

    monkeypatch.setattr(backend, "note", vanishing)
    manager = await started("none", exit_on_error=False)

    assert await manager.factor("good") == 2.0
    rows = {row[0]: row[2] for row in manager.table()}
    assert "No such file or directory" in rows["m"] and rows["good"] == "READY"
