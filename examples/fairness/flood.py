"""Shows what a flood costs another caller: python examples/fairness/flood.py [HOST:PORT] [SECONDS]

`alice` sends a request now and then, for 5 seconds: alone, then while `bob` keeps 64 requests in flight. The
header x-user names both. Exits with 1 if alice's p99 grows to more than twice what it is alone, with 2 if a
request fails or bob has no answers: then the times say nothing.

The server: core-serve --model-repository=examples/fairness/models --fair='*' --fair-header=x-user
Without --fair, alice waits behind all requests of bob. It needs only the standard library.
"""

import http.client
import json
import random
import sys
import threading
import time

ADDRESS = sys.argv[1] if len(sys.argv) > 1 else "localhost:8000"
SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 5.0
CLIENTS = 64
BODY = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 1], "data": [1.5]}]})


class Failed(Exception):
    """A request without an answer of status 200."""


class Client:
    """A connection of one caller."""

    def __init__(self, user):
        self._user = user
        self._connection = http.client.HTTPConnection(ADDRESS)

    def ask(self):
        """Send a request; return the seconds until its answer. Raises Failed, and OSError without one."""
        begun = time.perf_counter()
        headers = {"x-user": self._user, "Content-Type": "application/json"}
        self._connection.request("POST", "/v2/models/score/infer", BODY, headers)
        with self._connection.getresponse() as answer:
            text = answer.read()
            if answer.status != 200:
                raise Failed(f"{self._user}: {answer.status} {text.decode()}")
        return time.perf_counter() - begun


def light():
    """Send requests of alice with pauses; return median and p99 of their latencies in milliseconds."""
    client, found = Client("alice"), []
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        found.append(1000 * client.ask())
        time.sleep(random.uniform(0.01, 0.05))
    found.sort()
    return found[len(found) // 2], found[int(len(found) * 0.99)]


def flood(until, counts, errors):
    """Send requests of bob, one after the other, until one fails."""
    client = Client("bob")
    try:
        while not until.is_set():
            client.ask()
            counts.append(1)
    except (Failed, OSError, http.client.HTTPException) as error:
        errors.append(error)


def main():
    Client("alice").ask()
    median, alone = light()
    print(f"alice alone:      median {median:6.1f} ms, p99 {alone:6.1f} ms")
    until, counts, errors = threading.Event(), [], []
    given = (until, counts, errors)
    clients = [threading.Thread(target=flood, args=given) for _ in range(CLIENTS)]
    for each in clients:
        each.start()
    try:
        time.sleep(0.5)
        before, begun = len(counts), time.monotonic()
        median, beside = light()
        rate = (len(counts) - before) / (time.monotonic() - begun)
    finally:
        until.set()
        for each in clients:
            each.join()
    if errors:
        raise Failed(f"{len(errors)} of {CLIENTS} clients of bob failed, such as {errors[0]}")
    if not rate:
        raise Failed(f"bob had no answer in {SECONDS:g} s")
    print(f"alice beside bob: median {median:6.1f} ms, p99 {beside:6.1f} ms")
    print(f"bob:              {rate:6.0f} requests a second")
    print(f"p99 beside a flood is {beside / alone:.2f} times that alone")
    return beside > 2 * alone


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Failed, OSError, http.client.HTTPException) as error:
        print(f"{ADDRESS}: {error}", file=sys.stderr)
        sys.exit(2)
