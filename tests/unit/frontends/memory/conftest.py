"""Shared memory objects of a client that is a test."""

import gc
import os
import uuid

import pytest

from frontends.shared.memory import SharedMemoryRegions


class Client:
    """Makes objects in /dev/shm; writes and reads them as another process would."""

    def __init__(self):
        self._files = []

    def create(self, size=64, content=b"", prefix="core_unit_test_"):
        """The key of a new object."""
        name = f"{prefix}{uuid.uuid4().hex}"
        self._files.append(f"/dev/shm/{name}")
        with open(f"/dev/shm/{name}", "xb") as file:
            file.write(content)
            file.truncate(size)
        return f"/{name}"

    def link(self, target):
        """The key of a symbolic link."""
        name = f"core_unit_test_{uuid.uuid4().hex}"
        os.symlink(target, f"/dev/shm/{name}")
        self._files.append(f"/dev/shm/{name}")
        return f"/{name}"

    def pipe(self):
        """The key of a named pipe."""
        name = f"core_unit_test_{uuid.uuid4().hex}"
        os.mkfifo(f"/dev/shm/{name}")
        self._files.append(f"/dev/shm/{name}")
        return f"/{name}"

    @staticmethod
    def read(key):
        with open(f"/dev/shm{key}", "rb") as file:
            return file.read()

    @staticmethod
    def write(key, offset, content):
        with open(f"/dev/shm{key}", "r+b") as file:
            file.seek(offset)
            file.write(content)

    def remove_all(self):
        for path in self._files:
            os.unlink(path)


@pytest.fixture
def client():
    made = Client()
    yield made
    made.remove_all()


@pytest.fixture
def regions():
    return SharedMemoryRegions(allowed=True)


@pytest.fixture
def mappings():
    """Return the number of mappings of the tests' objects in this process."""
    gc.collect()  # what earlier tests hold in a circle of exception and frame

    def count():
        with open("/proc/self/maps") as maps:
            return sum("/dev/shm/core_unit_test_" in line for line in maps)

    return count
