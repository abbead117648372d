"""Fetched files: once for each content, complete or not at all, and removed when they are unused."""

import logging
import os
import subprocess
import sys
import tempfile
import threading
import time

import pytest
from core_cloud.cache import THREADS, Cache
from core_cloud.failure import Abandoned
from core_cloud.files import RemoteFile


def remote(content, key="k"):
    return RemoteFile(key=key, size=len(content), stamp=content, content=f"{key} {content}")


class Remote:
    """A store in which the content of a file is its stamp; `fetched` has the stamp of each `fetch`."""

    def __init__(self):
        self.fetched = []

    def fetch(self, file, target):
        self.fetched.append(file.stamp)
        target.write_text(file.stamp)


@pytest.fixture
def store():
    return Remote()


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    path = tmp_path / "temporary"
    path.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(path))
    return path


@pytest.fixture(params=["temporary", "kept"])
def cache(request, tmp_path, temporary):
    made = Cache(str(tmp_path / "kept") if request.param == "kept" else "")
    yield made
    made.close()
    assert list(temporary.iterdir()) == []


def test_files_are_put_where_they_are_wanted(cache, store):
    folder = cache.place_for("m")

    cache.bring(store.fetch, "s3://b/m", {"1/x": remote("one"), "labels": remote("two")}, folder)

    assert (folder / "1" / "x").read_text() == "one"
    assert (folder / "labels").read_text() == "two"
    assert folder.name == "m"


def test_the_same_content_is_fetched_once(cache, store):
    for _ in range(2):
        cache.bring(store.fetch, "s3://b/m", {"x": remote("one")}, cache.place_for("m"))

    assert store.fetched == ["one"]


def test_another_content_is_fetched_and_the_first_folder_keeps_its_own(cache, store):
    first, second = cache.place_for("m"), cache.place_for("m")
    cache.bring(store.fetch, "s3://b/m", {"x": remote("one")}, first)

    cache.bring(store.fetch, "s3://b/m", {"x": remote("two")}, second)

    assert [(each / "x").read_text() for each in (first, second)] == ["one", "two"]


def test_a_long_transfer_logs_its_progress(cache, monkeypatch, caplog):
    monkeypatch.setattr("core_cloud.cache.PROGRESS_S", 0.01)
    caplog.set_level(logging.INFO, "core")

    def fetch(file, target):
        target.write_bytes(bytes(300_000))
        end = time.monotonic() + 30
        while "s3://b/m: fetched 0.3 of 0.6 MB" not in caplog.messages:
            assert time.monotonic() < end
            time.sleep(0.01)
        target.write_bytes(bytes(600_000))

    file = RemoteFile(key="k", size=600_000, stamp="s", content="c")
    cache.bring(fetch, "s3://b/m", {"1/x": file}, cache.place_for("m"))

    assert "s3://b/m: fetched 0.3 of 0.6 MB" in caplog.messages


def test_files_of_two_models_are_not_mixed(cache, store):
    for model in "mn":
        cache.bring(store.fetch, f"s3://b/{model}", {"x": remote("one")}, cache.place_for(model))

    assert store.fetched == ["one", "one"]


def test_a_modified_object_is_fetched_again(cache, store):
    first, second = cache.place_for("m"), cache.place_for("m")
    cache.bring(store.fetch, "s3://b/m", {"x": remote("one")}, first)
    (first / "x").write_text("ONE")

    cache.bring(store.fetch, "s3://b/m", {"x": remote("one")}, second)

    assert (second / "x").read_text() == "one"


def test_a_file_system_without_links_gets_copies(cache, store, monkeypatch):
    def refuse(*_):
        raise OSError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    folder = cache.place_for("m")

    cache.bring(store.fetch, "s3://b/m", {"x": remote("one")}, folder)

    assert (folder / "x").read_text() == "one"


def test_a_fetch_that_breaks_leaves_nothing_half(cache, store):
    def broken(file, target):
        target.write_text("on")
        raise ConnectionError("cut")

    folder = cache.place_for("m")
    with pytest.raises(ConnectionError):
        cache.bring(broken, "s3://b/m", {"x": remote("one")}, folder)

    assert [each for each in folder.rglob("*") if each.is_file()] == []
    cache.bring(store.fetch, "s3://b/m", {"x": remote("one")}, folder)
    assert (folder / "x").read_text() == "one"


def test_complete_files_of_a_failed_fetch_are_not_fetched_again(cache, store):
    def broken(file, target):
        if file.stamp == "bad":
            raise ConnectionError("cut")
        store.fetch(file, target)

    files = {"good": remote("good"), "bad": remote("bad")}
    folder = cache.place_for("m")
    with pytest.raises(ConnectionError):
        cache.bring(broken, "s3://b/m", {"good": files["good"]} | files, folder)
    store.fetched.clear()

    cache.bring(store.fetch, "s3://b/m", files, folder)

    assert "bad" in store.fetched
    assert store.fetched.count("good") <= 1


def test_several_files_are_fetched_at_a_time_and_not_more_than_that(cache):
    gate = threading.Barrier(THREADS)
    running, most = [], []

    def fetch(file, target):
        running.append(file)
        most.append(len(running))
        gate.wait(20)
        running.remove(file)
        target.write_text(file.stamp)

    files = {f"{number}": remote(f"content {number}") for number in range(2 * THREADS)}
    cache.bring(fetch, "s3://b/m", files, cache.place_for("m"))

    assert max(most) == THREADS


def test_a_text_is_read_and_not_fetched_again_for_the_load(cache, store):
    assert cache.read(store.fetch, "s3://b/m/config.pbtxt", remote("text")) == b"text"

    cache.bring(store.fetch, "s3://b/m", {"config.pbtxt": remote("text")}, cache.place_for("m"))

    assert store.fetched == ["text"]


def test_after_the_end_nothing_is_fetched(store):
    cache = Cache()
    folder = cache.place_for("m")
    cache.close()

    with pytest.raises(Abandoned):
        cache.bring(store.fetch, "s3://b/m", {"x": remote("one")}, folder)
    assert not folder.parent.parent.exists()


def test_the_end_stops_a_thread_that_waits_for_many_files(cache):
    """The end does not wait for threads that end in time, so `close` finds running and waiting fetches."""
    begun, go = threading.Semaphore(0), threading.Event()
    raised = []

    def fetch(file, target):
        begun.release()
        assert go.wait(20)
        raise Abandoned("the server ends")

    def bring():
        files = {str(number): remote(f"content {number}") for number in range(3 * THREADS)}
        with pytest.raises(Abandoned) as error:
            cache.bring(fetch, "s3://b/m", files, folder)
        raised.append(error.value)

    folder = cache.place_for("m")
    bringing = threading.Thread(target=bring, daemon=True)
    bringing.start()
    for _ in range(THREADS):
        assert begun.acquire(timeout=20)
    cache.close()
    go.set()
    bringing.join(20)

    assert not bringing.is_alive() and len(raised) == 1


def test_a_file_system_without_times_is_an_error_and_not_filled_repeatedly(
    cache, store, monkeypatch
):
    monkeypatch.setattr(os, "utime", lambda *_, **__: None)

    with pytest.raises(OSError, match="does not keep the time of change"):
        cache.bring(store.fetch, "s3://b/m", {"x": remote("one")}, cache.place_for("m"))

    assert store.fetched == ["one"]


# Temporary and kept ------------------------------------------------------------------------


def test_a_temporary_cache_removes_objects_without_links(temporary, store):
    cache = Cache()
    files, first, second = {"x": remote("one")}, cache.place_for("m"), cache.place_for("m")
    cache.bring(store.fetch, "s3://b/m", files, first)
    cache.bring(store.fetch, "s3://b/m", files, second)

    cache.remove("s3://b/m", files, first)
    assert (second / "x").read_text() == "one"
    cache.remove("s3://b/m", files, second)

    assert [each.name for each in temporary.rglob("*") if each.is_file()] == []
    cache.close()


def test_a_kept_cache_keeps_the_newest_of_each_file(tmp_path, temporary, store):
    cache = Cache(str(tmp_path / "kept"))
    for content in ("one", "two"):
        folder = cache.place_for("m")
        cache.bring(store.fetch, "s3://b/m", {"x": remote(content)}, folder)
        cache.remove("s3://b/m", {"x": remote(content)}, folder)
    cache.close()

    left = [each.read_text() for each in (tmp_path / "kept").rglob("*") if each.is_file()]
    assert left == ["two"]


KILLED_IN_A_FETCH = """
import os, sys
from core_cloud.cache import Cache
from core_cloud.files import RemoteFile

def fetch(file, target):
    target.write_text("hal")
    os._exit(9)

cache = Cache(sys.argv[1])
cache.bring(fetch, "s3://b/m", {"x": RemoteFile("k", 4, "half", "half")}, cache.place_for("m"))
"""


def test_a_partial_file_of_a_killed_process_is_removed_with_the_next_content(
    tmp_path, temporary, store
):
    subprocess.run([sys.executable, "-c", KILLED_IN_A_FETCH, str(tmp_path / "kept")], check=False)
    assert len(list((tmp_path / "kept").rglob("*.part"))) == 1
    cache = Cache(str(tmp_path / "kept"))

    cache.bring(store.fetch, "s3://b/m", {"x": remote("one")}, cache.place_for("m"))

    assert list((tmp_path / "kept").rglob("*.part")) == []
    cache.close()


def test_two_processes_fetch_the_same_file_once(tmp_path, store):
    """Two caches of one folder are to each other what two processes are."""
    one, two = Cache(str(tmp_path)), Cache(str(tmp_path))
    begun, go = threading.Event(), threading.Event()

    def slow(file, target):
        begun.set()
        assert go.wait(20)
        store.fetch(file, target)

    folders = one.place_for("m"), two.place_for("m")
    first = threading.Thread(
        target=one.bring, args=(slow, "s3://b/m", {"x": remote("one")}, folders[0])
    )
    second = threading.Thread(
        target=two.bring, args=(store.fetch, "s3://b/m", {"x": remote("one")}, folders[1])
    )
    first.start()
    assert begun.wait(20)
    second.start()
    go.set()
    first.join()
    second.join()

    assert [(each / "x").read_text() for each in folders] == ["one", "one"]
    assert store.fetched == ["one"]
    one.close()
    two.close()


def test_a_folder_of_a_killed_process_is_removed_by_the_next(temporary, store):
    program = (
        "import os, tempfile, sys; tempfile.tempdir = sys.argv[1]\n"
        "from core_cloud.cache import Cache\n"
        "Cache().place_for('m').mkdir(parents=True); os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", program, str(temporary)], check=False)
    assert len(list(temporary.iterdir())) == 1
    living = Cache()
    kept = living.place_for("m")
    kept.mkdir(parents=True)

    other = Cache()
    other.place_for("n")

    assert kept.exists()
    assert len(list(temporary.iterdir())) == 2
    living.close()
    other.close()


def test_a_folder_that_cannot_be_made_is_named_with_its_flag(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(OSError, match="--cloud-cache-directory"):
        Cache(str(tmp_path / "file" / "folder")).place_for("m")


def test_a_temporary_folder_may_be_elsewhere(tmp_path):
    cache = Cache("", str(tmp_path))

    assert cache.place_for("m").is_relative_to(tmp_path)

    cache.close()
    assert list(tmp_path.iterdir()) == []
