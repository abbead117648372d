"""Freed memory that no account counts goes back to the system."""

import asyncio
import platform
import subprocess
import sys

import pytest

from core.system import heap
from frontends.grpc import free_memory

# Blocks of 1 MB below one in use; prints how much of them is free.
FREED = """
from core.system import heap
heap.keep()
from frontends.grpc import free_memory
pieces = [b"x" * (1 << 20) for _ in range(300)]
last = b"y" * (1 << 20)
end = [bytes(200) for _ in range(100000)]
del pieces
print(free_memory.free_bytes()())
"""


@pytest.fixture(autouse=True)
def often(monkeypatch):
    monkeypatch.setattr(free_memory, "LOOK_S", 0.001)


async def test_much_goes_back_until_the_watch_stops():
    trimmed = asyncio.Event()
    loop = asyncio.get_running_loop()
    free = [heap.KEPT + heap.WORTH_A_TRIM + 1]
    watch = free_memory.FreeMemoryWatch(
        lambda: free[0], lambda: loop.call_soon_threadsafe(trimmed.set)
    )

    watch.start(loop)
    await asyncio.wait_for(trimmed.wait(), 20)
    watch.stop()

    assert watch._timer.cancelled()


async def test_little_stays():
    looked, trims = asyncio.Event(), []

    def free():
        looked.set()
        return heap.KEPT

    watch = free_memory.FreeMemoryWatch(free, lambda: trims.append(None))

    watch.start(asyncio.get_running_loop())
    await asyncio.wait_for(looked.wait(), 20)
    watch.stop()

    assert trims == []


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="it is glibc's")
def test_the_library_reports_its_free_memory():
    run = [sys.executable, "-c", FREED]

    printed = subprocess.run(run, capture_output=True, text=True, check=True, timeout=60).stdout

    assert int(printed) > 150 * 2**20
