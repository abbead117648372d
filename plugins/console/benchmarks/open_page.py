"""Measure what an open page costs a server under full load: python plugins/console/benchmarks/open_page.py

One processor serves twenty models and is busy all the time, another one sends requests to four of them.
Prints the processor time of what runs for the page: looks at the models, their events, and the samples of
the instances. The status is 1 if that is more than 1 % of a core. Takes half a minute.

The time is measured within the server: from outside, the processor time of a request varies by more than
the page takes.
"""

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import ExitStack, contextmanager
from pathlib import Path

MODELS = 20
BUSY = 4
LIMIT = 0.01  # of a core
CONFIG = """
backend: "identity"
max_batch_size: 8
input { name: "INPUT0" data_type: TYPE_FP32 dims: [ 16 ] }
output { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 16 ] }
"""
# core.serve, with a clock around what the console does on the event loop.
METERED = """
import sys, time
from core import serve
from core_console import hub, lanes

spent = {}

def meter(owner, name):
    function = getattr(owner, name)
    def timed(*arguments):
        begin = time.thread_time_ns()
        try:
            return function(*arguments)
        finally:
            spent[name] = spent.get(name, 0) + time.thread_time_ns() - begin
    setattr(owner, name, timed)

class Timed:
    "A coroutine whose steps count."
    def __init__(self, coroutine):
        self.coroutine = coroutine
    def __await__(self):
        return self
    def __iter__(self):
        return self
    def __next__(self):
        return self.send(None)
    def send(self, value):
        begin = time.thread_time_ns()
        try:
            return self.coroutine.send(value)
        finally:
            spent["looks"] = spent.get("looks", 0) + time.thread_time_ns() - begin

look = hub.Hub._look
hub.Hub._look = lambda self: Timed(look(self))
meter(hub, "_event")
meter(hub.Subscription, "put")
meter(lanes.Lanes, "_look")
try:
    serve.main(sys.argv[1:])
finally:
    print("spent", sum(spent.values()), flush=True)
"""


def free_port():
    """Return a port that is free now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@contextmanager
def program(processor, *command, **more):
    """Run a program of Python on one processor until the block ends."""
    pinned = ["taskset", "-c", str(processor), sys.executable, *command]
    with subprocess.Popen(pinned, stderr=subprocess.DEVNULL, text=True, **more) as running:
        try:
            yield running
        finally:
            running.terminate()


def cpu_s(pid):
    """Return the processor time of a process since its start, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait_until_ready(address):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            return urllib.request.urlopen(f"http://{address}/v2/health/ready", timeout=5).read()
        except OSError:
            time.sleep(0.1)
    sys.exit("the server does not start")


def measured(folder, seconds):
    """Return the share of a core that the server takes, and what a page takes of it."""
    for number in range(MODELS):
        path = Path(folder, f"model_{number}")
        (path / "1").mkdir(parents=True)
        (path / "config.pbtxt").write_text(CONFIG)
    address = f"127.0.0.1:{free_port()}"
    flags = [
        *(f"--model-repository={folder}", f"--http-port={address.split(':')[1]}"),
        *("--http-address=127.0.0.1", "--allow-grpc=false", "--allow-metrics=false"),
        *("--allow-console=true", "--metrics-config=summary_latencies=true", "--log-info=false"),
    ]
    with program(0, "-c", METERED, *flags, stdout=subprocess.PIPE) as server:
        wait_until_ready(address)
        with ExitStack() as stack:
            for number in range(BUSY):
                load = ("-m", "core", "bench", f"model_{number}", "-u", address, "-t", "8")
                endless = ("--measurement-interval", "3600000")
                stack.enter_context(program(1, *load, *endless, stdout=subprocess.DEVNULL))
            time.sleep(3)
            url = f"http://{address}/console/stream"
            with urllib.request.urlopen(url, timeout=seconds) as page:
                begin, cpu = time.monotonic(), cpu_s(server.pid)
                while time.monotonic() < begin + seconds:
                    page.readline()
                took, cpu = time.monotonic() - begin, cpu_s(server.pid) - cpu
        server.terminate()
        text = next(line for line in server.stdout if line.startswith("spent"))
    return cpu / took, int(text.split()[1]) / 1e9 / took


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=20)
    with tempfile.TemporaryDirectory() as folder:
        server, page = measured(folder, parser.parse_args().seconds)
    print(f"the server takes {server:.1%} of a core, an open page {page:.2%} of that core")
    return page > LIMIT


if __name__ == "__main__":
    sys.exit(main())
