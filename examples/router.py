"""One address for three servers, one of which ends: python examples/router.py

Starts three servers and a router, sends requests to the router, and ends a server between two of them. The
model says on which server it is. It needs `pip install --find-links wheels 'core[router]'`.
"""

import json
import re
import subprocess
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import core

X, Y = {"x": ("FP32", [1])}, {"y": ("FP32", [2])}


def start(number):
    """Start a server in this process whose model returns x and the number of the server."""
    server = core.Server().start()
    server.bind("who", lambda x: {"y": np.append(x, np.float32(number))}, inputs=X, outputs=Y)
    return server, server.serve(http_port=0)["http"]


def ask(port, x):
    """Send a request; return the number of the server that has answered."""
    tensor = {"name": "x", "datatype": "FP32", "shape": [1], "data": [x]}
    request = urllib.request.Request(
        f"http://localhost:{port}/v2/models/who/infer", json.dumps({"inputs": [tensor]}).encode()
    )
    with urllib.request.urlopen(request) as response:
        same, number = json.load(response)["outputs"][0]["data"]
    assert same == x
    return int(number)


def ask_many(port):
    """Send requests, eight at a time; print which servers have answered."""
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda x: ask(port, x), range(200)))
    print(f"{len(answers)} requests, answered by servers {sorted(set(answers))}")


def main():
    servers, ports = zip(*[start(number) for number in range(3)], strict=True)
    names = ",".join(f"localhost:{port}" for port in ports)
    command = [sys.executable, "-m", "core", "router", "--http-port=0", "--admin-port=0"]
    router = subprocess.Popen([*command, f"--servers={names}"], stderr=subprocess.PIPE, text=True)
    try:
        port = next(
            int(found[1])
            for line in router.stderr
            if (found := re.search(r"router at http://\S+:(\d+) for clients", line))
        )
        ask_many(port)
        servers[0].stop()
        ask_many(port)
    finally:
        router.terminate()
        router.wait()
        for server in servers:
            server.stop()


if __name__ == "__main__":
    main()
