"""What the server asks of the system, in both forms."""

import os
import subprocess
import sys
import tempfile
from multiprocessing import resource_tracker, shared_memory

import pytest

from core.system import platform


@pytest.fixture(params=[False, True], ids=["linux", "portable"])
def portable(request, monkeypatch):
    if not request.param and sys.platform != "linux":
        pytest.skip("this is not Linux")
    monkeypatch.setattr(platform, "PORTABLE", request.param)
    monkeypatch.setattr(platform, "MEMORY", platform.Path("/dev/shm"))
    return request.param


@pytest.mark.parametrize("value,portable", [("", False), ("0", False), ("1", True)])
def test_the_variable_selects_the_form(value, portable):
    program = "from core.system import platform; print(platform.PORTABLE, platform.PROC.exists())"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"CORE_PORTABLE": value},
        capture_output=True,
        text=True,
        check=True,
    )

    expected = portable or sys.platform != "linux"
    assert done.stdout.split() == [str(expected), str(not expected)]


def test_unnamed_memory_has_no_name_and_is_not_inherited(portable, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    file = platform.unnamed_memory("test", 10_000)
    try:
        assert os.fstat(file).st_size == 10_000 and os.fstat(file).st_nlink == 0
        assert os.pread(file, 10, 9_990) == bytes(10)
        assert os.pwrite(file, b"x", 9_999) == 1
        assert not os.get_inheritable(file)
        assert os.listdir(tmp_path) == []
    finally:
        os.close(file)


def test_objects_of_other_processes_are_opened(portable):
    other = shared_memory.SharedMemory(create=True, size=4096)
    resource_tracker.unregister(other._name, "shared_memory")
    try:
        file = platform.open_shared_memory(other.name)
        os.pwrite(file, b"both", 0)
        os.close(file)
        assert bytes(other.buf[:4]) == b"both"
    finally:
        other.close()
        resource_tracker.register(other._name, "shared_memory")
        other.unlink()

    with pytest.raises(OSError):
        platform.open_shared_memory(other.name)


def test_the_cores_are_those_of_the_process_or_of_the_machine(portable):
    if portable:
        assert platform.cores() == frozenset(range(os.cpu_count()))
    else:
        assert platform.cores() == os.sched_getaffinity(0)


def test_only_linux_binds_threads(portable):
    if portable:
        with pytest.raises(OSError, match="only Linux binds threads"):
            platform.bind(0, {0})
    else:
        before = os.sched_getaffinity(0)
        platform.bind(0, before)
        assert os.sched_getaffinity(0) == before
