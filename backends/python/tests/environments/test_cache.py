"""The cache of environments: each is made once, and kept while it is in use."""

import multiprocessing
import os
import stat
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from backend_python.environments import Unusable
from backend_python.environments.cache import Cache

FORK = multiprocessing.get_context("fork")


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """The folder for temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def make(text="made"):
    def make(folder):
        folder.mkdir()
        (folder / "file").write_text(text)

    return make


def never(folder):
    raise AssertionError("it is there already")


def inside(temporary):
    return sorted(each.name for folder in temporary.iterdir() for each in folder.iterdir())


def test_an_entry_is_made_once():
    cache = Cache(None)

    first = cache.entry("key", "an archive", make())

    assert cache.entry("key", "an archive", never) == first
    assert (first / "file").read_text() == "made"
    cache.close()


def test_threads_that_want_the_same_wait_for_the_first():
    cache, made, together = Cache(None), [], threading.Barrier(8)

    def slowly(folder):
        made.append(folder)
        make()(folder)

    def want(_):
        together.wait()
        return (cache.entry("key", "", slowly) / "file").read_text()

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(want, range(8))) == ["made"] * 8
    assert len(made) == 1
    cache.close()


def test_a_caller_that_waits_for_another_uses_its_result():
    # Both have seen no entry when the first begins; it still uses the entry when the second continues.
    cache, seen, made = Cache(None), threading.Barrier(2), []
    ask = cache._make

    def both_want(*arguments):
        seen.wait()
        ask(*arguments)

    cache._make = both_want

    def slowly(folder):
        made.append(folder)
        make()(folder)

    with ThreadPoolExecutor(2) as threads:
        paths = list(threads.map(lambda _: cache.entry("key", "", slowly), range(2)))

    assert paths == made * 2
    cache.close()


def test_a_temporary_folder_is_removed_with_its_last_user(temporary):
    first, second = Cache(None), Cache(None)
    path = first.entry("key", "", make())
    second.entry("key", "", never)

    first.close()
    assert path.exists()

    second.close()
    assert inside(temporary) == []


def test_a_permanent_folder_stays(tmp_path):
    folder = tmp_path / "cache"
    cache = Cache(folder)
    path = cache.entry("key", "an archive", make())
    cache.close()

    assert path == folder / "key"
    assert (folder / "key.done").read_text() == "an archive\n"
    assert Cache(folder).entry("key", "", never) == path


def test_a_failed_environment_leaves_no_files_and_is_retried(tmp_path):
    cache = Cache(tmp_path / "cache")

    def half(folder):
        folder.mkdir()
        (folder / "half").touch()
        raise Unusable("cannot be unpacked")

    with pytest.raises(Unusable, match="cannot be unpacked"):
        cache.entry("key", "", half)

    assert not (tmp_path / "cache/key").exists()
    assert (cache.entry("key", "", make()) / "file").exists()


def die(folder):
    folder.mkdir()
    (folder / "half").touch()
    os._exit(0)


def test_an_environment_of_a_dead_process_is_made_again(tmp_path):
    cache = Cache(tmp_path / "cache")
    maker = FORK.Process(target=cache.entry, args=("key", "", die))
    maker.start()
    maker.join()
    assert (tmp_path / "cache/key/half").exists()

    path = cache.entry("key", "", make())

    assert sorted(each.name for each in path.iterdir()) == ["file"]


def use_and_die(cache):
    cache.entry("left", "", make())
    os._exit(0)


def test_files_of_a_killed_server_are_removed_by_the_next(temporary):
    user = FORK.Process(target=use_and_die, args=(Cache(None),))
    user.start()
    user.join()
    assert inside(temporary) == ["left", "left.done", "left.lock", "left.making"]

    cache = Cache(None)
    cache.entry("key", "", make())

    assert inside(temporary) == ["key", "key.done", "key.lock", "key.making"]
    cache.close()


def use_until_told(pipe):
    cache = Cache(None)
    cache.entry("key", "", make())
    pipe.send("uses it")
    pipe.recv()
    cache.close()


def test_files_of_another_process_stay(temporary):
    ours, theirs = FORK.Pipe()
    other = FORK.Process(target=use_until_told, args=(theirs,))
    other.start()
    assert ours.recv() == "uses it"

    cache = Cache(None)
    path = cache.entry("key", "", never)
    cache.close()
    assert path.exists()

    ours.send("end")
    other.join()
    assert inside(temporary) == []


def test_the_temporary_folder_is_the_users_alone(temporary):
    cache = Cache(None)
    cache.entry("key", "", make())

    (folder,) = temporary.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    cache.close()


@pytest.mark.parametrize("how", ["open to all", "a link"])
def test_a_temporary_folder_that_others_may_write_to_is_refused(temporary, tmp_path, how):
    folder = temporary / f"core-environments-{os.geteuid()}"
    if how == "a link":
        (tmp_path / "theirs").mkdir(mode=0o700)
        folder.symlink_to(tmp_path / "theirs")
    else:
        folder.mkdir()
        folder.chmod(0o777)

    with pytest.raises(Unusable, match=r"is not this user's alone; .*environment-cache-directory="):
        Cache(None).entry("key", "", never)
