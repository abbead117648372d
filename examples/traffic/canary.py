"""Walks version 2 of a model from 1 to 100 % of the requests: python examples/traffic/canary.py [HOST:PORT]

The server: core-serve --model-repository=examples/traffic/models. It needs only the standard library.
"""

import json
import sys
import time
import urllib.error
import urllib.request
from collections import Counter

ADDRESS = sys.argv[1] if len(sys.argv) > 1 else "localhost:8000"
STEPS = (1, 10, 50, 100)  # per cent of the requests
REQUESTS = 200  # of each step


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


def walk():
    """Raise the share of version 2 step by step, as long as it answers."""
    for percent in STEPS:
        call("/traffic", {"weights": {"1": 100 - percent, "2": percent}})
        answers = Counter(ask() for _ in range(REQUESTS))
        window = call("/traffic")["versions"][1]["window"]
        print(
            f"{percent:3} % for version 2: {answers['2']:3} of {REQUESTS} answers, "
            f"{window['errors']} errors, p99 {window['p99_ms'] or 0:.1f} ms"
        )
        if window["errors"]:
            sys.exit("version 2 fails: the walk ends")


if __name__ == "__main__":
    begun = time.monotonic()
    try:
        walk()
    except urllib.error.URLError as error:
        sys.exit(f"{ADDRESS}: {error}")
    print(f"version 2 has all requests after {time.monotonic() - begun:.0f} s")
