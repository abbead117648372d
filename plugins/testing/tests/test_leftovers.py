"""`core_testing.leftovers` tells what this process leaves from what other processes use."""

import os
import signal
import subprocess
import sys

import pytest
from core_testing import leftovers

# Holds a lock, whose semaphore has a name, until it is ended.
HOLDER = """
import multiprocessing, os, time
lock = multiprocessing.get_context("spawn").Lock()
print(os.getpid(), flush=True)
time.sleep(60)
"""
# A process that starts the holder and ends: the holder is nobody's child here.
STARTER = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', sys.argv[1]])"


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="needs /dev/shm")
@pytest.mark.parametrize("is_child", [True, False])
def test_a_semaphore_counts_only_if_a_child_has_it(is_child):
    before = leftovers.shared_memory()
    command = [HOLDER] if is_child else [STARTER, HOLDER]
    with subprocess.Popen(
        [sys.executable, "-c", *command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as started:
        holder = int(started.stdout.readline())
        semaphores = {each for each in leftovers.shared_memory() - before if "sem.mp" in each}
        try:
            assert semaphores
            found = semaphores & leftovers.new_shared_memory(before)
        finally:
            os.kill(holder, signal.SIGKILL)

    assert bool(found) == is_child
