"""Polling during a copy: files that change are not loaded. `between` runs between the two looks."""

import shutil

import pytest


@pytest.fixture
async def polled(folder, manage, config):
    """A polling manager with the model m, which doubles."""
    folder.model("m", config=config, text="2")
    manager = manage("poll", exit_on_error=False)
    await manager.start()
    return manager


def once(ticker, function):
    """Call a function once, between the next two looks."""

    def between():
        ticker.between = lambda: None
        function()

    ticker.between = between


def append(path, text):
    with path.open("a") as file:
        file.write(text)


async def test_a_file_that_grows_is_not_loaded_half(polled, folder, ticker, backend):
    file = folder.path / "m" / "1" / "model.txt"
    file.write_text("3")
    once(ticker, lambda: append(file, "0"))

    await ticker.tick()
    assert await polled.factor() == 2
    await ticker.tick()

    assert await polled.factor() == 30
    assert backend.calls.count("load m:1") == 2


async def test_a_model_whose_files_still_change_is_not_loaded(
    polled, folder, ticker, config, backend
):
    folder.model("n", config=None, versions=())
    once(ticker, lambda: (folder.path / "n" / "config.pbtxt").write_text(config))
    await ticker.tick()
    once(ticker, lambda: folder.version("n", 1, "3"))
    await ticker.tick()
    assert "n" not in {each["name"] for each in polled.index(True)}

    await ticker.tick()

    assert await polled.factor("n") == 3
    assert backend.calls.count("load n:1") == 1


async def test_a_version_that_is_still_copied_does_not_take_over(polled, folder, ticker):
    folder.version("m", 2, "3")
    once(ticker, lambda: append(folder.path / "m" / "2" / "model.txt", "5"))

    await ticker.tick()
    assert polled.entries("m") == {1: "READY"}
    await ticker.tick()

    assert await polled.factor() == 35


async def test_one_that_is_copied_holds_up_no_other(polled, folder, ticker, config):
    folder.model("n", config=config, text="3")
    (folder.path / "m" / "1" / "model.txt").write_text("4")
    once(ticker, lambda: append(folder.path / "n" / "1" / "model.txt", "0"))

    await ticker.tick()

    assert await polled.factor() == 4
    assert "n" not in {each["name"] for each in polled.index(True)}


async def test_the_first_start_does_not_wait(polled, ticker):
    assert await polled.factor() == 2
    assert ticker.now == 15  # the poller has begun to wait for its first look


async def test_a_poll_without_changes_does_not_wait(polled, ticker):
    await ticker.tick()
    before = ticker.now

    await ticker.tick()

    assert ticker.now - before == 15


async def test_a_copy_that_pauses_too_long_fails_and_is_loaded_when_it_is_whole(
    polled, folder, ticker
):
    file = folder.path / "m" / "1" / "model.txt"
    file.write_text("fail: half")
    await ticker.tick()
    assert await polled.factor() == 2

    file.write_text("7")
    await ticker.tick()

    assert await polled.factor() == 7


async def test_a_model_that_is_away_while_it_is_replaced_is_never_unloaded(polled, folder, ticker):
    version = polled.resolve("m")
    shutil.move(folder.path / "m", folder.path.parent / "old")
    once(ticker, lambda: shutil.move(folder.path.parent / "old", folder.path / "m"))

    await ticker.tick()

    assert polled.resolve("m") is version


async def test_a_model_is_replaced_by_renaming(polled, folder, other, ticker, config):
    other.model("m", config=config, text="9")
    (folder.path / "m").rename(folder.path.parent / "old")
    (other.path / "m").rename(folder.path / "m")

    await ticker.tick()

    assert await polled.factor() == 9


async def test_a_model_is_replaced_by_turning_a_link(folder, other, manage, ticker, config):
    one = other.model("one", config=config, text="2")
    two = other.model("two", config=config, text="9")
    link = folder.path / "m"
    link.symlink_to(one)
    manager = manage("poll")
    await manager.start()
    assert await manager.factor() == 2

    (folder.path.parent / "new").symlink_to(two)
    (folder.path.parent / "new").rename(link)
    await ticker.tick()

    assert await manager.factor() == 9


async def test_a_version_that_vanishes_before_it_is_read_keeps_the_serving_one(
    polled, folder, ticker, backend
):
    folder.version("m", 2, "3")
    note = backend.note

    def vanish(event, model=None):
        note(event, model)
        if event == "load" and model.version == 2:
            shutil.rmtree(folder.path / "m" / "2", ignore_errors=True)

    backend.note = vanish
    await ticker.tick()
    assert await polled.factor() == 2
    assert "No such file" in polled.reason("m", 2)

    backend.note = note
    await ticker.tick()

    assert await polled.factor() == 2
    assert polled.entries("m") == {1: "READY"}


async def test_the_end_does_not_wait_for_files_to_come_to_rest(polled, folder, ticker):
    folder.version("m", 2, "3")
    stopped = []
    ticker.between = lambda: stopped.append(polled._poller.stop())

    await polled.poll()

    assert stopped
    assert await polled.factor() == 2
