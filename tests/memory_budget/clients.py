"""Clients: threads that send the requests of one trace, over HTTP and gRPC by turns."""

from __future__ import annotations

import http.client
import itertools
import json
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import tritonclient.grpc as triton

from memory_budget.steady import BODY

DEADLINE_S = 60.0
LEFT, DEAD = "left", "with a killed process"  # results
_UNHEALTHY = "not healthy"  # of a request whose process was killed
SHORT_S = 0.02  # of requests whose deadline may pass while their model loads


class Clients:
    """`threads` clients that send one trace together; the n-th request is for the n-th model of it.

    seconds   after which no further request begins; 0 for the whole trace
    dies      whether the process of a model may be killed meanwhile
    first     model → the value that it has to answer
    results   what happened → how often; every entry of `failures` is a request without a right answer
    threads   number of clients
    sent      number of the requests that have begun
    """

    def __init__(
        self,
        http_port: int,
        grpc_port: int,
        trace: Sequence[str],
        first: Callable[[str], float],
        threads: int,
        seed: int,
        dies: Callable[[str], bool] = lambda model: False,
        seconds: float = 0,
    ):
        self.results: Counter[str] = Counter()
        self.failures: list[str] = []
        self.threads = threads
        self._http_port, self._trace, self._first = http_port, trace, first
        self._dies = dies
        self._grpc = triton.InferenceServerClient(f"localhost:{grpc_port}")
        self._next = itertools.count()
        self.begun = 0  # number of the latest request, about
        self.sent = 0
        self._seconds, self._end_s = seconds, float("inf")
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._run, args=(seed + number,)) for number in range(threads)
        ]

    def run(self) -> None:
        """Send the trace, or as much of it as the time allows."""
        if self._seconds:
            self._end_s = time.monotonic() + self._seconds
        for each in self._threads:
            each.start()
        for each in self._threads:
            each.join()
        self._grpc.close()

    def _run(self, seed: int) -> None:
        draw = random.Random(seed)
        connection = http.client.HTTPConnection("localhost", self._http_port, timeout=DEADLINE_S)
        while (number := next(self._next)) < len(self._trace):
            model, chance = self._trace[number], draw.random()
            if time.monotonic() >= self._end_s:
                return
            self.begun = number
            try:
                if chance < 0.02:
                    what = self._leave(model)
                elif number % 2:
                    what = self._over_grpc(model, SHORT_S if chance < 0.05 else DEADLINE_S)
                else:
                    what = self._over_http(connection, model)
            except Exception as error:  # every kind is a failure
                what = f"failed {type(error).__name__}: {error}"
                connection.close()
            if what.startswith("failed") and _UNHEALTHY in what and self._dies(model):
                what = DEAD
            with self._lock:
                self.sent = max(self.sent, number + 1)
                if what.startswith("failed"):
                    self.failures.append(f"{model}: {what}")
                    what = "failed"
                self.results[what] += 1

    def _over_http(self, connection: http.client.HTTPConnection, model: str) -> str:
        connection.request("POST", f"/v2/models/{model}/infer", body=BODY)
        response = connection.getresponse()
        found = json.loads(response.read())
        if response.status != 200:
            return f"failed {response.status} {found}"
        return self._checked(model, found["outputs"][0]["data"][0])

    def _over_grpc(self, model: str, timeout_s: float) -> str:
        given = triton.InferInput("i", [1], "INT64")
        given.set_data_from_numpy(np.zeros(1, np.int64))
        try:
            found = self._grpc.infer(model, [given], client_timeout=timeout_s)
        except triton.InferenceServerException as error:
            if timeout_s == SHORT_S and "DEADLINE_EXCEEDED" in str(error.status()):
                return "deadline passed"
            return f"failed {error}"
        array = found.as_numpy("y")
        assert array is not None
        return self._checked(model, float(array[0]))

    def _leave(self, model: str) -> str:
        """Send a request and disconnect before its answer."""
        head = f"POST /v2/models/{model}/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(BODY)}\r\n\r\n"
        with socket.create_connection(("localhost", self._http_port)) as left:
            left.sendall(head.encode() + BODY)
            time.sleep(0.002)
        return LEFT

    def _checked(self, model: str, value: float) -> str:
        expected = self._first(model)
        return "answered" if value == expected else f"failed: {value}, expected {expected}"
