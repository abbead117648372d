"""Rolls a version of a model out: python examples/traffic/canary.py [HOST:PORT] [VERSION, 2 by default]

First the version gets copies of requests; their answers are compared with those of version 1, and dropped.
Then it gets 1, 10, 50 and 100 % of the requests. If it fails too often, the server takes it out by itself:
version 3 does.

The server: core-serve --model-repository=examples/traffic/models. It needs only the standard library.
"""

import json
import sys
import time
import urllib.error
import urllib.request
from collections import Counter

ADDRESS = sys.argv[1] if len(sys.argv) > 1 else "localhost:8000"
VERSION = sys.argv[2] if len(sys.argv) > 2 else "2"
STEPS = (1, 10, 50, 100)  # per cent of the requests
REQUESTS = 200  # of each step
OBJECTIVE = {"error_rate": 0.05, "p99_ms": 2000, "min_requests": 10, "to": 1}


def call(path, value=None):
    """GET a path, or POST a value to it; return the JSON of the answer."""
    body = None if value is None else json.dumps(value).encode()
    with urllib.request.urlopen(f"http://{ADDRESS}/v2/models/price{path}", body) as answer:
        return json.loads(answer.read())


def ask():
    """Send a request that names no version; return the version that has answered, or "error"."""
    rooms = {"name": "rooms", "datatype": "FP32", "shape": [1], "data": [3]}
    try:
        return call("/infer", {"inputs": [rooms]})["model_version"]
    except urllib.error.HTTPError as error:
        error.close()
        return "error"


def entry(entries):
    """Return the entry of the version in a list of the traffic."""
    return next(each for each in entries if each["version"] == int(VERSION))


def compare():
    """Copy requests to the version; print how its answers differ from those of version 1."""
    # Prices within 2 % count as equal.
    call("/traffic", {"weights": {"1": 1}, "shadow": {"version": int(VERSION), "rtol": 0.02}})
    for _ in range(REQUESTS):
        ask()
    while (found := entry(call("/traffic")["shadows"]))["in_flight"]:
        time.sleep(0.05)
    counts = ", ".join(f"{found[each]} {each}" for each in ("equal", "differing", "error"))
    print(
        f"copies to version {VERSION}: {counts}, largest difference {found['largest_difference']}"
    )


def walk():
    """Raise the share of the version step by step, until the server takes it out."""
    for percent in STEPS:
        weights = {"1": 100 - percent, VERSION: percent}
        call("/traffic", {"weights": weights, "rollback": OBJECTIVE})
        answers = Counter(ask() for _ in range(REQUESTS))
        time.sleep(0.5)  # the server judges it four times a second
        found = call("/traffic")
        if found["source"] == "rollback":
            sys.exit(f"version {VERSION} is rolled back: {found['rollbacks'][-1]['reason']}")
        window = entry(found["versions"])["window"]
        print(
            f"{percent:3} % for version {VERSION}: {answers[VERSION]:3} of {REQUESTS} answers, "
            f"{window['errors']} errors, p99 {window['p99_ms'] or 0:.1f} ms"
        )


if __name__ == "__main__":
    begun = time.monotonic()
    try:
        compare()
        walk()
    except urllib.error.URLError as error:
        sys.exit(f"{ADDRESS}: {error}")
    print(f"version {VERSION} has all requests after {time.monotonic() - begun:.0f} s")
