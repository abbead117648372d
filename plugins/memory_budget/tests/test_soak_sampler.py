"""The memory that the soak of the memory budget sees: that of a process and of those it has started."""

import os
import signal
import subprocess
import sys

import pytest
from memory_budget.sampler import private_bytes

MB = 2**20
# Takes 64 MiB, then starts a process: a program with 32 MiB, or its own copy that executes none yet.
PARENT = """
import os, subprocess, sys, time
held = bytearray(b"x") * (64 << 20)
if sys.argv[1] == "program":
    child = subprocess.Popen([sys.executable, "-c", sys.argv[2]], stdout=subprocess.PIPE)
    child.stdout.readline()
elif not os.fork():
    time.sleep(60)
print(flush=True)
time.sleep(60)
"""
PROGRAM = "held = bytearray(b'x') * (32 << 20); print(flush=True); import time; time.sleep(60)"


@pytest.fixture
def seen():
    """Return a function that starts PARENT and returns the bytes that are seen of it."""
    running = []

    def seen(kind):
        process = subprocess.Popen(
            [sys.executable, "-c", PARENT, kind, PROGRAM],
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        running.append(process)
        process.stdout.readline()
        return private_bytes(process.pid)

    yield seen
    for process in running:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()


def test_a_started_program_counts(seen):
    assert 96 * MB < seen("program") < 128 * MB


def test_a_process_that_has_not_executed_its_program_does_not_count(seen):
    assert 64 * MB < seen("copy") < 96 * MB
