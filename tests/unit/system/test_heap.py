"""Freed memory is kept for later requests, unless the environment configures malloc."""

import asyncio
import os
import platform
import subprocess
import sys
import threading

import pytest

from core.system import heap

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="it is glibc's")

# Batches of 24 MB in pieces of 1 MB; prints the page faults of 20 of them.
BATCHES = """
import resource
import numpy as np

def batch():
    pieces = [np.ones(1 << 17) for _ in range(24)]

for _ in range(3):
    batch()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    batch()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
KEEP = "from core.system import heap\nheap.keep()\n"


def printed(program, **variables):
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("MALLOC_") and name != "GLIBC_TUNABLES"
    }
    run = [sys.executable, "-c", program]
    return subprocess.run(
        run, env={**clean, **variables}, capture_output=True, text=True, check=True, timeout=60
    ).stdout


def test_a_batch_finds_the_memory_of_the_one_before():
    without, kept = int(printed(BATCHES)), int(printed(KEEP + BATCHES))

    assert without > 20_000  # else this machine shows nothing
    assert kept < without / 20


def test_processes_of_models_do_the_same():
    child = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {BATCHES!r}])"

    assert int(printed(KEEP + child)) < 1000


def test_a_trim_gives_back_what_was_freed_below_a_block_in_use():
    free = """
import asyncio
from core.system import heap
pieces = [bytes(50_000) for _ in range(1000)]
last = bytes(50_000)
resident = lambda: int(open("/proc/self/statm").read().split()[1]) * 4096
del pieces
before = resident()
asyncio.run(heap.trim())
print(before - resident())
"""

    assert int(printed(KEEP + free)) > 40_000_000


@pytest.mark.parametrize(
    "chosen",
    [
        {"MALLOC_TRIM_THRESHOLD_": "131072"},
        {"GLIBC_TUNABLES": "glibc.malloc.trim_threshold=131072"},
    ],
    ids=lambda chosen: next(iter(chosen)),
)
def test_configured_malloc_settings_are_kept(chosen):
    assert int(printed(KEEP + BATCHES, **chosen)) > 20_000


# A thread of each arena holds a block while it frees 32 MB above it; at the end all are trimmed.
THREADS = """
import threading
from core.system import heap
hold = threading.Barrier(40)
def work():
    pieces = [bytes(100_000) for _ in range(320)]
    pieces[1:] = []
    hold.wait()
threads = [threading.Thread(target=work) for _ in range(40)]
for each in threads:
    each.start()
for each in threads:
    each.join()
heap.system_trim()()
print(int(open("/proc/self/statm").read().split()[1]) * 4096 >> 20)
"""


def test_threads_share_a_few_heaps_whose_free_ends_are_kept():
    few = "from core.system import platform\nplatform.cores = lambda: {0, 1}\n" + KEEP

    assert int(printed(few + THREADS)) < 200
    assert int(printed(few + THREADS, MALLOC_ARENA_MAX="16")) > 250  # a chosen number counts


def test_another_c_library_is_no_error(monkeypatch):
    from core.system import heap

    monkeypatch.delenv("MALLOC_TRIM_THRESHOLD_", raising=False)
    monkeypatch.delenv("MALLOC_MMAP_THRESHOLD_", raising=False)
    monkeypatch.setattr(heap.ctypes, "CDLL", lambda name: object())

    heap.keep()

    assert "MALLOC_TRIM_THRESHOLD_" not in os.environ


class TestTrimmer:
    """Memory of requests returns to the system some time after much of it was freed."""

    @pytest.fixture
    def trims(self, monkeypatch):
        monkeypatch.setattr(heap, "TRIM_DELAY_S", 0.0)
        return []

    async def test_much_that_was_freed_is_given_back_once(self, trims):
        trimmed = asyncio.Event()
        loop = asyncio.get_running_loop()

        def trim():
            trims.append(threading.current_thread())
            loop.call_soon_threadsafe(trimmed.set)

        trimmer = heap.Trimmer(trim)

        for _ in range(100):
            trimmer.freed(heap.WORTH_A_TRIM // 10)
        await asyncio.wait_for(trimmed.wait(), 20)

        assert len(trims) == 1
        assert trims[0] is not threading.current_thread()

    async def test_little_is_not(self, trims):
        trimmer = heap.Trimmer(lambda: trims.append(None))

        trimmer.freed(heap.WORTH_A_TRIM - 1)
        await asyncio.sleep(0)

        assert not trimmer._waits

    def test_without_a_loop_no_trim_starts(self, trims):
        heap.Trimmer(lambda: trims.append(None)).freed(heap.WORTH_A_TRIM)

        assert trims == []

    def test_memory_below_a_block_in_use_is_returned(self):
        """Blocks of 1 MB are in the heap; the last one stays, and keeps the others without a trim."""
        program = KEEP + RETAINED

        before, kept, after = map(int, printed(program).split())

        assert kept - before > 150 * 2**20
        assert after - before < 50 * 2**20


RETAINED = """
import gc

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096

before = resident()
pieces = [b"x" * (1 << 20) for _ in range(300)]
last = b"y" * (1 << 20)
end = [bytes(200) for _ in range(100000)]
del pieces
gc.collect()
kept = resident()
heap.system_trim()()
print(before, kept, resident())
"""
