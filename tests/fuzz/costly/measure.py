"""Measure the cost of a recipe for a server: peak memory, and the delay of other clients."""

from __future__ import annotations

import pathlib
import socket
import threading
import time
from dataclasses import dataclass

import grpc

LONGEST_S = 20.0
"""For an answer. What takes longer is cut off, and has cost enough."""
UNREAD_S = 1.0
"""So long answers that nobody reads are left to wait."""
_HEALTH = b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n"
_EVERY_S = 0.005


@dataclass(frozen=True)
class Cost:
    """What one run of a recipe cost.

    sent       bytes that its connections sent
    memory     bytes that the server and its children held at their peak more than before
    stall_s    longest that a request for the server's health waited
    outcome    status of the first answer, "" for none
    """

    sent: int
    memory: int
    stall_s: float
    outcome: str

    @property
    def excess(self) -> float:
        """Bytes of memory beyond three times what was sent."""
        return self.memory - 3 * self.sent


class Meter:
    """Measures one server. Linux: it reads /proc.

    server   of conformance.launcher
    """

    def __init__(self, server):
        self._server = server
        self._channel = grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}")
        self._methods = {}

    def cost(self, recipe) -> Cost:
        """Send the bytes of the recipe, and wait for the responses or for LONGEST_S."""
        wire = recipe.wire()
        processes = self._processes()
        before = {pid: _forget_peak(pid) for pid in processes}
        watch = _Watch(self._server.http_port)
        try:
            send = self._over_http if recipe.protocol == "http" else self._over_grpc
            outcome = send(recipe, wire)
        finally:
            stall_s = watch.end()
        memory = sum(max(0, _peak(pid) - before[pid]) for pid in processes)
        return Cost(len(wire) * recipe.connections, memory, stall_s, outcome)

    @property
    def alive(self) -> bool:
        """Whether the server still runs."""
        return self._server.process.poll() is None

    def close(self) -> None:
        self._channel.close()

    def _processes(self):
        """The server's process and all that it started."""
        found, waiting = [], [self._server.process.pid]
        while waiting:
            pid = waiting.pop()
            found.append(pid)
            try:
                children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text()
            except OSError:
                continue
            waiting += map(int, children.split())
        return found

    def _over_http(self, recipe, wire):
        opened = []
        try:
            for _ in range(recipe.connections):
                opened.append(_connected(self._server.http_port, small=not recipe.reads))
            senders = [threading.Thread(target=_send, args=(each, wire)) for each in opened]
            for sender in senders:
                sender.start()
            outcomes = [""]
            if recipe.reads:
                outcomes = [_read(each) for each in opened]
            else:
                time.sleep(UNREAD_S)
            for each in opened:
                _end(each)
            for sender in senders:
                sender.join(LONGEST_S)
            return outcomes[0]
        finally:
            for each in opened:
                each.close()

    def _over_grpc(self, recipe, wire):
        path = recipe.target[0]
        message = recipe.plain()
        compression = {
            "gzip": grpc.Compression.Gzip,
            "deflate": grpc.Compression.Deflate,
            "": grpc.Compression.NoCompression,
        }[recipe.packing]
        call = self._call(path)
        if path.endswith("ModelStreamInfer"):
            started = [
                call(iter([message]), timeout=LONGEST_S, compression=compression)
                for _ in range(recipe.connections)
            ]
            codes = [_code(each) for each in started]
            return codes[0]
        pending = [
            call.future(message, timeout=LONGEST_S, compression=compression)
            for _ in range(recipe.connections)
        ]
        codes = [each.code().name for each in pending]
        return codes[0]

    def _call(self, path):
        if path not in self._methods:
            streams = path.endswith("ModelStreamInfer")
            make = self._channel.stream_stream if streams else self._channel.unary_unary
            self._methods[path] = make(path, bytes, bytes)
        return self._methods[path]


class _Watch:
    """Polls the server's health, on a separate connection and thread."""

    def __init__(self, port):
        self._socket = _connected(port)
        self._ended = False
        self._longest_s = 0.0
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def end(self) -> float:
        """Stop; return the longest time that an answer took, in seconds."""
        self._ended = True
        self._thread.join()
        self._socket.close()
        return self._longest_s

    def _run(self):
        while not self._ended:
            began = time.perf_counter()
            try:
                self._socket.sendall(_HEALTH)
                self._socket.recv(4096)
            except OSError:  # the server has ended: the search reports it
                return
            self._longest_s = max(self._longest_s, time.perf_counter() - began)
            time.sleep(_EVERY_S)


def _connected(port, small=False):
    found = socket.socket()
    found.settimeout(LONGEST_S)
    if small:  # so that the kernel buffers little of an unread response
        found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    found.connect(("127.0.0.1", port))
    return found


def _send(connection, wire):
    try:
        connection.sendall(wire)
    except OSError:
        pass  # the server has refused without reading to the end, or this was cut off


def _read(connection):
    """Read an answer to its end, keeping nothing; return its status."""
    try:
        head = connection.recv(65536)
        status = head[9:12].decode("latin-1")
        fields, _, rest = head.lower().partition(b"\r\n\r\n")
        length = fields.partition(b"content-length:")[2].partition(b"\r\n")[0]
        left = int(length or 0) - len(rest)
        while left > 0 and (piece := connection.recv(1 << 20)):
            left -= len(piece)
        return status
    except (OSError, ValueError):
        return ""


def _end(connection):
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # it has ended already


def _code(call):
    try:
        for _ in call:
            pass
    except grpc.RpcError:
        pass  # the code says what it was
    return call.code().name


def _forget_peak(pid):
    """Let the kernel count the peak of a process anew; return the bytes that it holds now."""
    try:
        pathlib.Path(f"/proc/{pid}/clear_refs").write_text("5")
    except OSError:  # it has ended
        return 0
    return _peak(pid)


def _peak(pid):
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024 if "VmHWM:" in status else 0
