"""Clients that send given bytes, and return the outcome."""

import json
import socket
from typing import NamedTuple

import grpc
import numpy as np
import tritonclient.grpc.service_pb2 as pb

from . import grpc_messages, http_messages

LONGEST_S = 60  # until an answer; a server that needs longer hangs
_IN_FLIGHT = 64


class Outcome(NamedTuple):
    """The server's response. `status` is "gone" if it closed the connection without one."""

    status: int | str
    text: bytes


class HttpClient:
    """One connection that is made anew when the server has ended it."""

    def __init__(self, port):
        self._port = port
        self._socket = None
        self._stream = None

    def ask(self, message):
        """Return the response to a request with valid framing. Raises TimeoutError for none."""
        for attempt in range(2):
            if self._socket is None:
                self._connect()
            try:
                self._socket.sendall(message)
                return self._answer()
            except (ConnectionError, ValueError):
                fresh, self._socket = attempt, None
                if fresh:
                    return Outcome("gone", b"")
        raise AssertionError("not reached")

    def throw(self, data):
        """Return the first response to bytes on a separate connection, after reading all data."""
        with socket.create_connection(("127.0.0.1", self._port), timeout=LONGEST_S) as own:
            found = b""
            try:
                own.sendall(data)
                own.shutdown(socket.SHUT_WR)
                while piece := own.recv(65536):
                    found = (found + piece)[:65536]
            except TimeoutError:
                raise
            except OSError:
                pass  # it has refused without reading to the end
        if not found.startswith(b"HTTP/1.1 "):
            return Outcome("gone" if not found else "no HTTP", found[:200])
        return Outcome(int(found[9:12]), found.partition(b"\r\n\r\n")[2])

    def close(self):
        if self._socket is not None:
            self._socket.close()

    def _connect(self):
        self._socket = socket.create_connection(("127.0.0.1", self._port), timeout=LONGEST_S)
        self._stream = self._socket.makefile("rb")

    def _answer(self):
        line = self._stream.readline()
        if not line:
            raise ConnectionResetError("the server has closed the connection")
        status, length, chunked, close = int(line.split()[1]), 0, False, False
        while (line := self._stream.readline()) not in (b"\r\n", b""):
            name, _, value = line.lower().partition(b":")
            length = int(value) if name == b"content-length" else length
            chunked = chunked or name == b"transfer-encoding"
            close = close or (name == b"connection" and b"close" in value)
        text = self._chunks() if chunked else self._stream.read(length)
        if close:
            self._socket.close()
            self._socket = None
        return Outcome(status, text)

    def _chunks(self):
        found = b""
        while size := int(self._stream.readline(), 16):
            found += self._stream.read(size)
            self._stream.readline()
        self._stream.readline()
        return found


class GrpcClient:
    """Calls over one channel, some of them at a time."""

    def __init__(self, port):
        self._port = port
        self._channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        self._pending = []
        self._unary = {}

    def begin(self, method, data):
        """Send a call; `answers` has what came of it."""
        if method not in self._unary:
            self._unary[method] = self._channel.unary_unary(
                method, request_serializer=bytes, response_deserializer=bytes
            )
        self._pending.append(self._unary[method].future(data, timeout=LONGEST_S))

    def answers(self, all_of_them=False):
        """The outcomes of the calls so far, in their order, once there are enough of them."""
        if not all_of_them and len(self._pending) < _IN_FLIGHT:
            return []
        pending, self._pending = self._pending, []
        return [_outcome(each) for each in pending]

    def persist(self, method, data):
        """The outcome of a call, waiting for a server that begins again."""
        call = self._unary[method].future(data, timeout=LONGEST_S, wait_for_ready=True)
        return _outcome(call)

    def stream(self, messages):
        """The outcome of a stream with these messages; of its answers only that they came."""
        call = self._channel.stream_stream(
            grpc_messages.STREAM, request_serializer=bytes, response_deserializer=bytes
        )(iter(messages), timeout=LONGEST_S)
        texts = b""
        try:
            for answer in call:
                texts += pb.ModelStreamInferResponse.FromString(answer).error_message.encode()
        except grpc.RpcError as error:
            return Outcome(error.code().name, (error.details() or "").encode() + texts)
        return Outcome("OK", texts)

    def throw(self, data):
        """Send bytes on a separate connection; wait until the server ends it."""
        try:
            own = socket.create_connection(("127.0.0.1", self._port), timeout=LONGEST_S)
        except (ConnectionRefusedError, ConnectionResetError):  # grpcio begins again
            return Outcome("refused", b"")
        with own:
            try:
                own.sendall(data)
                own.shutdown(socket.SHUT_WR)
                while own.recv(65536):
                    pass
            except TimeoutError:
                raise
            except OSError:
                pass  # the server has ended it before all was sent
        return Outcome("gone", b"")

    def close(self):
        self._channel.close()


def _outcome(future):
    error = future.exception()
    if error is None:
        return Outcome("OK", future.result())
    return Outcome(error.code().name, (error.details() or "").encode())


def good_over_http(outcome):
    """Whether it is the answer to http_messages.GOOD."""
    return outcome.status == 200 and json.loads(outcome.text)["outputs"][0]["data"] == [42.0]


def good_over_grpc(outcome):
    """Whether it is the answer to grpc_messages.good()."""
    if outcome.status != "OK":
        return False
    answer = pb.ModelInferResponse.FromString(outcome.text)
    return np.frombuffer(answer.raw_output_contents[0], np.float32).tolist() == [42.0]


GOOD_HTTP = http_messages.framed("/v2/models/plain/infer", http_messages.GOOD_BODY)
GOOD_GRPC = grpc_messages.good().SerializeToString()
