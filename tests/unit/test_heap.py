"""Freed memory is kept for what comes next, unless somebody has chosen otherwise."""

import os
import platform
import subprocess
import sys

import pytest

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
KEEP = "from core import heap\nheap.keep()\n"


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


@pytest.mark.parametrize(
    "chosen",
    [
        {"MALLOC_TRIM_THRESHOLD_": "131072"},
        {"GLIBC_TUNABLES": "glibc.malloc.trim_threshold=131072"},
    ],
    ids=lambda chosen: next(iter(chosen)),
)
def test_what_somebody_has_chosen_is_left_alone(chosen):
    assert int(printed(KEEP + BATCHES, **chosen)) > 20_000


def test_another_c_library_is_no_error(monkeypatch):
    from core import heap

    monkeypatch.delenv("MALLOC_TRIM_THRESHOLD_", raising=False)
    monkeypatch.delenv("MALLOC_MMAP_THRESHOLD_", raising=False)
    monkeypatch.setattr(heap.ctypes, "CDLL", lambda name: object())

    heap.keep()

    assert "MALLOC_TRIM_THRESHOLD_" not in os.environ
