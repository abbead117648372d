"""Compares settings of a model that serves: python examples/settings/compare.py [HOST:PORT]

Clients send requests all the time; meanwhile the settings change, three times, and then go back to what they
were. The server: core-serve --model-repository=examples/settings/models. It needs only the standard library.
"""

import json
import sys
import threading
import time
import urllib.error
import urllib.request

ADDRESS = sys.argv[1] if len(sys.argv) > 1 else "localhost:8000"
CLIENTS = 8
SECONDS = 1.0  # of each step
STEPS = {
    "a delay of 20 ms": {"max_queue_delay_microseconds": 20000},
    "no delay": {"max_queue_delay_microseconds": 0},
    "no delay, 2 may wait": {"default_queue_policy": {"max_queue_size": 2}},
}


def call(path, value=None):
    """GET a path, or POST a value to it; return the JSON of the answer."""
    body = None if value is None else json.dumps(value).encode()
    with urllib.request.urlopen(f"http://{ADDRESS}{path}", body) as answer:
        return json.loads(answer.read())


def ask():
    """Send a request; return whether it was refused, because the queue is full."""
    x = {"name": "x", "datatype": "FP32", "shape": [1, 1], "data": [3]}
    try:
        (y,) = call("/v2/models/score/infer", {"inputs": [x]})["outputs"]
    except urllib.error.HTTPError as error:
        if "maximum queue size" not in json.loads(error.read())["error"]:
            raise
        time.sleep(0.01)
        return True
    assert y["data"] == [6]
    return False


class Clients:
    """Threads that send one request after the other, and note (how long it took, whether it was refused)."""

    def __init__(self):
        self.found = []
        self._ends = threading.Event()
        self._threads = [threading.Thread(target=self._send) for _ in range(CLIENTS)]

    def _send(self):
        while not self._ends.is_set():
            begun = time.monotonic()
            refused = ask()
            self.found.append((time.monotonic() - begun, refused))

    def __enter__(self):
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_):
        self._ends.set()
        for each in self._threads:
            each.join()


def main():
    before = call("/v2/models/score/settings")["number"]
    with Clients() as clients:
        for name, batching in STEPS.items():
            settings = call("/v2/models/score/settings", {"dynamic_batching": batching})
            time.sleep(SECONDS / 4)  # what waits now began before
            begun = len(clients.found)
            time.sleep(SECONDS)
            taken = sorted(took for took, refused in clients.found[begun:] if not refused)
            refused = sum(refused for _, refused in clients.found[begun:])
            print(
                f"number {settings['number']}, {name}: {len(taken) / SECONDS:.0f} requests/s, "
                f"half of them within {1000 * taken[len(taken) // 2]:.1f} ms, {refused} refused"
            )
        rollback = {"model": "score", "number": before}
        result = call("/control/model_settings.rollback", rollback)["result"]
    for path, change in result["history"][-1]["changes"].items():
        print(f"back to number {before}: {path} {change['from']} → {change['to']}")


if __name__ == "__main__":
    try:
        main()
    except urllib.error.URLError as error:
        sys.exit(f"{ADDRESS}: {error}")
