"""A framework behind a bare socket: python -m benchmarks.backends.bare CASE FOLDER

This is the upper limit for a server in Python: it reads each request into the same memory, takes size and
form from the first request of the connection, runs it, and writes the response. It prints its port, and ends
when its standard input closes.
"""

from __future__ import annotations

import json
import os
import re
import select
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.backends.case import Case, cases
from benchmarks.backends.serving import ROOT, STOP_S
from benchmarks.exchange import JSON_SIZE
from benchmarks.models.sample import Arrays

MOST_READ = 1 << 20
LINE = 64  # bytes of a cache line; tensors begin at multiples of it


@contextmanager
def bare(case: Case, folder: Path, core: int) -> Iterator[int]:
    """Run such a server on one core; yield its port. Raises RuntimeError if it does not start."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.backends.bare", case.name, str(folder)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, {core}),
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        if not (answer := process.stdout.readline()):
            raise RuntimeError(f"the bare server has ended with {process.wait(STOP_S)}")
        yield int(answer)
    finally:
        process.stdin.close()
        process.wait(STOP_S)
        process.stdout.close()


class Connection:
    """A connection of a client whose requests differ from its first one only in the numbers."""

    def __init__(self, peer: socket.socket, case: Case, run: Callable[[Arrays], Arrays]):
        self._peer = peer
        self._case = case
        self._run = run
        self._first = b""  # bytes received before the first complete head
        self._room: memoryview | None = None  # for one request
        self._tensor: np.ndarray[Any, Any]  # FP32[rows, width] within it
        self._there = 0

    def receive(self) -> bool:
        """Read received bytes, and answer a complete request; return False at the end."""
        try:
            return self._receive()
        except ConnectionError:  # the client disconnected before its response
            return False

    def _receive(self) -> bool:
        if self._room is None:
            found = self._peer.recv(MOST_READ)
            self._first += found
            if b"\r\n\r\n" in self._first:
                self._begin()
        else:
            count = self._peer.recv_into(self._room[self._there :])
            self._there += count
            found = b"." * (count > 0)
        if self._room is not None and self._there == len(self._room):
            self._there = 0
            self._answer()
        return bool(found)

    def _begin(self) -> None:
        head = self._first[: self._first.index(b"\r\n\r\n") + 4]
        tensor_at = len(head) + _number(head, JSON_SIZE)
        size = len(head) + _number(head, "Content-Length")
        memory = np.empty(size + LINE, np.uint8)
        begin = -(memory.ctypes.data + tensor_at) % LINE
        self._room = memoryview(memory.data)[begin : begin + size]
        tensor = memory[begin + tensor_at : begin + size].view(np.float32)
        self._tensor = tensor.reshape(-1, self._case.width)
        self._there = len(self._first)
        self._room[: self._there] = self._first

    def _answer(self) -> None:
        name = self._case.outputs
        found = self._run({self._case.inputs: self._tensor})[name]
        text = json.dumps(
            {
                "outputs": [
                    {
                        "name": name,
                        "datatype": "FP32",
                        "shape": found.shape,
                        "parameters": {"binary_data_size": found.nbytes},
                    }
                ]
            }
        ).encode()
        head = (
            b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n"
            b"%s: %d\r\nContent-Length: %d\r\n\r\n"
        ) % (JSON_SIZE.encode(), len(text), len(text) + found.nbytes)
        self._peer.sendall(head + text + found.tobytes())


def _number(head: bytes, field: str) -> int:
    found = re.search(rb"(?i)\r\n%s: *(\d+)" % field.encode(), head)
    if found is None:
        raise ValueError(f"a head without {field}: {head!r}")
    return int(found[1])


def serve(case: Case, run: Callable[[Arrays], Arrays]) -> None:
    """Serve until the standard input closes."""
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    poll = select.epoll()
    for each in (listener, sys.stdin):
        poll.register(each, select.EPOLLIN)
    connections: dict[int, Connection] = {}
    while True:
        for descriptor, _ in poll.poll():
            if descriptor == sys.stdin.fileno():
                return
            if descriptor == listener.fileno():
                peer, _ = listener.accept()
                peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                connections[peer.fileno()] = Connection(peer, case, run)
                poll.register(peer, select.EPOLLIN)
            elif not connections[descriptor].receive():
                poll.unregister(descriptor)
                del connections[descriptor]  # which closes it


def main(name: str, folder: str) -> None:
    case = next(each for each in cases() if each.name == name)
    serve(case, case.load(Path(folder)))


if __name__ == "__main__":
    main(*sys.argv[1:])
