"""Processes of vLLM end with the server that has started them."""

import os
import signal
import subprocess
import sys
import time

import pytest
from backend_vllm.orphans import VARIABLE

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has the signal")

CHILD = """
import time
from backend_vllm.orphans import end_with_server
end_with_server()
print("ready", flush=True)
time.sleep(60)
"""
SERVER = f"""
import subprocess, sys, time
from backend_vllm.orphans import mark_server
if len(sys.argv) > 1:
    mark_server()
child = subprocess.Popen([sys.executable, "-c", {CHILD!r}], stdout=subprocess.PIPE, text=True)
child.stdout.readline()
print(child.pid, flush=True)
time.sleep(60)
"""


def child_of_a_killed_server(*arguments):
    """Return the process id of a child whose server was killed."""
    command = [sys.executable, "-c", SERVER, *arguments]
    environment = dict(os.environ)
    environment.pop(VARIABLE, None)  # of a server that ran in this process
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        child = int(server.stdout.readline())
        server.kill()
    return child


def lives(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{process}/stat") as file:
        return file.read().rpartition(") ")[2][0] != "Z"


def test_a_process_of_vllm_ends_with_a_killed_server():
    child = child_of_a_killed_server("marked")

    end = time.monotonic() + 10
    while lives(child) and time.monotonic() < end:
        time.sleep(0.01)
    assert not lives(child)


def test_a_process_of_no_server_stays():
    child = child_of_a_killed_server()
    try:
        assert lives(child)
    finally:
        os.kill(child, signal.SIGKILL)
