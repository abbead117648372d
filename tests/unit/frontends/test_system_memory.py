"""Memory of the operating system, in both forms."""

import os
import sys
import tempfile
from multiprocessing import resource_tracker, shared_memory

import pytest

from core.system import platform
from frontends.shared import system_memory


@pytest.fixture(params=[False, True], ids=["linux", "portable"])
def portable(request, monkeypatch):
    if not request.param and sys.platform != "linux":
        pytest.skip("this is not Linux")
    monkeypatch.setattr(platform, "PORTABLE", request.param)
    monkeypatch.setattr(platform, "MEMORY", platform.Path("/dev/shm"))
    return request.param


def test_unnamed_memory_has_no_name_and_is_not_inherited(portable, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    file = system_memory.unnamed_memory("test", 10_000)
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
        file = system_memory.open_shared_memory(other.name)
        os.pwrite(file, b"both", 0)
        os.close(file)
        assert bytes(other.buf[:4]) == b"both"
    finally:
        other.close()
        resource_tracker.register(other._name, "shared_memory")
        other.unlink()

    with pytest.raises(OSError):
        system_memory.open_shared_memory(other.name)
