"""Shows what equal requests cost that come together: examples/response_cache/together.py [HOST:PORT] [TTL]

32 clients send the same request at the same time, as after a page has become popular or a cache was emptied.
Prints how many rows the model has executed for them, and how long they took.

The server: core-serve --model-repository=examples/response_cache/models \
  --cache-config=local,size=1048576 --cache-config=local,ttl=2 --cache-config=local,coalesce=true
Without coalesce, the model executes all of them. It needs only the standard library.
"""

import json
import sys
import threading
import time
import urllib.request

ADDRESS = sys.argv[1] if len(sys.argv) > 1 else "localhost:8000"
TTL = float(sys.argv[2]) if len(sys.argv) > 2 else 2.0  # seconds, as the server has it
CLIENTS = 32


def ask(value):
    x = {"name": "x", "datatype": "FP32", "shape": [1, 1], "data": [value]}
    url = f"http://{ADDRESS}/v2/models/score/infer"
    with urllib.request.urlopen(url, json.dumps({"inputs": [x]}).encode()) as answer:
        return json.loads(answer.read())["outputs"][0]["data"][0]


def executed():
    """Return the rows that the model has executed."""
    with urllib.request.urlopen(f"http://{ADDRESS}/v2/models/score/stats") as answer:
        return json.loads(answer.read())["model_stats"][0]["inference_count"]


def together(value):
    """Send equal requests at the same time; return the rows executed for them, and the seconds."""
    ready = threading.Barrier(CLIENTS + 1)

    def client():
        ready.wait()
        assert ask(value) == 2 * value

    clients = [threading.Thread(target=client) for _ in range(CLIENTS)]
    for each in clients:
        each.start()
    before = executed()
    ready.wait()
    begun = time.monotonic()
    for each in clients:
        each.join()
    return executed() - before, time.monotonic() - begun


def main():
    value = time.time() % 1000 // 0.125 * 0.125  # one that no earlier run has sent
    rows, seconds = together(value)
    print(f"{CLIENTS} equal requests together: {rows} executed, {seconds:.2f} s")
    rows, seconds = together(value)
    print(f"the same from the cache:     {rows} executed, {seconds:.2f} s")
    time.sleep(TTL + 0.2)
    rows, seconds = together(value)
    print(f"after the age of the entry:  {rows} executed, {seconds:.2f} s")


if __name__ == "__main__":
    main()
