"""Measure what an open page costs a server under full load: python plugins/console/benchmarks/open_page.py

One processor serves twenty models and is busy all the time, another one sends requests to four of them. In
rounds by turns, a page is open or not. Prints processor time for each request, and what the page takes of a
core: the difference times the rate, with its standard error. The status is 1 if that is more than 1 % of a
core. Takes two minutes.
"""

import argparse
import json
import os
import socket
import statistics
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


def free_port():
    """Return a port that is free now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@contextmanager
def program(processor, *command):
    """Run a program on one processor until the block ends."""
    pinned = ["taskset", "-c", str(processor), sys.executable, "-m", *command]
    running = subprocess.Popen(pinned, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield running
    finally:
        running.terminate()
        running.wait()


class Server:
    """A server of the models in `folder`, on the first processor."""

    def __init__(self, stack, folder):
        for number in range(MODELS):
            path = Path(folder, f"model_{number}")
            (path / "1").mkdir(parents=True)
            (path / "config.pbtxt").write_text(CONFIG)
        self.address = f"127.0.0.1:{free_port()}"
        port = self.address.split(":")[1]
        self.process = stack.enter_context(
            program(
                0,
                *("core.serve", f"--model-repository={folder}", f"--http-port={port}"),
                *("--http-address=127.0.0.1", "--allow-grpc=false", "--allow-metrics=false"),
                *("--allow-console=true", "--metrics-config=summary_latencies=true"),
            )
        )
        self._wait()

    def _wait(self):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                return self._ask("v2/health/ready")
            except OSError:
                time.sleep(0.1)
        sys.exit("the server does not start")

    def _ask(self, path):
        with urllib.request.urlopen(f"http://{self.address}/{path}", timeout=30) as answer:
            return answer.read()

    def answered(self):
        """Return the number of answers since the start."""
        rows = json.loads(self._ask("v2/models/stats"))["model_stats"]
        return sum(each["inference_stats"]["success"]["count"] for each in rows)

    def cpu_s(self):
        """Return the processor time of the server since its start, in seconds."""
        text = Path(f"/proc/{self.process.pid}/stat").read_text()
        fields = text.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @contextmanager
    def page(self):
        """Read the events that a page gets until the block ends; the block gets their number."""
        url = f"http://{self.address}/console/stream"
        reader = subprocess.Popen(
            ["taskset", "-c", "1", "curl", "-sN", url], stdout=subprocess.PIPE, text=True
        )
        reader.stdout.readline()
        try:
            yield
        finally:
            reader.terminate()
            reader.communicate()


def measured(server, seconds):
    """Return microseconds of the server for each answer, and answers per second."""
    time.sleep(0.5)
    begin, cpu, count = time.monotonic(), server.cpu_s(), server.answered()
    time.sleep(seconds)
    took, cpu, count = (
        time.monotonic() - begin,
        server.cpu_s() - cpu,
        server.answered() - count,
    )
    return cpu / count * 1e6, count / took


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=5)
    options = parser.parse_args()
    closed, opened, rates = [], [], []
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        server = Server(stack, folder)
        for number in range(BUSY):
            load = ("core", "bench", f"model_{number}", "-u", server.address, "-t", "8")
            endless = ("--measurement-interval", "3600000")
            stack.enter_context(program(1, *load, *endless))
        time.sleep(3)
        for turn in range(options.rounds):
            for page in (False, True) if turn % 2 else (True, False):
                with server.page() if page else ExitStack():
                    cost, rate = measured(server, options.seconds)
                (opened if page else closed).append(cost)
                rates.append(rate)
    rate = statistics.median(rates)
    shares = [(one - other) * rate / 1e6 for one, other in zip(opened, closed, strict=True)]
    share, error = statistics.mean(shares), statistics.stdev(shares) / len(shares) ** 0.5
    print(f"{rate:,.0f} answers a second, {rate * statistics.median(closed) / 1e6:.2f} of a core")
    print(f"an answer: {statistics.median(closed):.2f} us of the server, with an open page")
    print(f"           {statistics.median(opened):.2f} us")
    print(f"the page:  {share:.2%} of a core, standard error {error:.2%}")
    return share > LIMIT


if __name__ == "__main__":
    sys.exit(main())
