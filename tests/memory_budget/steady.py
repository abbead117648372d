"""Steady: a client of one model at a steady rate, in a process of its own.

[Steady] ─► python steady.py PORT MODEL VALUE, until its input ends ─► [[when, seconds], …] as JSON

No other client takes its interpreter or its connection, so its times are those of the server.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field

EVERY_S = 0.01
MOST_LATE_S = 1.0  # then requests are left out
TIMEOUT_S = 60.0
BODY = json.dumps(
    {"inputs": [{"name": "i", "shape": [1], "datatype": "INT64", "data": [0]}]}
).encode()


@dataclass
class Answers:
    """What a steady client has seen.

    times      (time.monotonic() of the request, seconds until its answer)
    failures   texts of requests without the right answer
    """

    times: list[tuple[float, float]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def between(self, first: float, last: float) -> list[float]:
        """Return the seconds of the requests that were sent from one moment to another."""
        return [seconds for at, seconds in self.times if first <= at < last]


class Steady:
    """The process of a steady client. It sends requests until `stop`."""

    def __init__(self, port: int, model: str, value: float):
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(port), model, str(value)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def stop(self) -> Answers:
        """End the process, and return what it has seen."""
        text, _ = self._process.communicate()
        found = json.loads(text)
        return Answers([(at, seconds) for at, seconds in found["times"]], found["failures"])

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def send(port: int, model: str, value: float, ended: threading.Event) -> Answers:
    """Send a request each EVERY_S until `ended`.

    A request counts from the moment at which it was due, if the answer before it came later than that.
    """
    found = Answers()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    due = time.monotonic()
    while not ended.is_set():
        late = time.monotonic() > due
        time.sleep(max(0.0, due - time.monotonic()))
        begun = due if late else time.monotonic()
        try:
            connection.request("POST", f"/v2/models/{model}/infer", body=BODY)
            response = connection.getresponse()
            answer = json.loads(response.read())
            if response.status != 200 or answer["outputs"][0]["data"] != [value]:
                found.failures.append(f"{response.status} {answer}")
        except Exception as error:  # every kind is a failure
            found.failures.append(f"{type(error).__name__}: {error}")
            connection.close()
        found.times.append((begun, time.monotonic() - begun))
        due = max(due + EVERY_S, time.monotonic() - MOST_LATE_S)
    return found


def main() -> None:
    port, model, value = sys.argv[1:]
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    found = send(int(port), model, float(value), ended)
    print(json.dumps({"times": found.times, "failures": found.failures}))


if __name__ == "__main__":
    main()
