"""Clients: requests by urllib, and connections that send any bytes."""

import json
import socket
import time
import urllib.error
import urllib.request

PATIENCE_S = 20


def until(condition, patience_s=PATIENCE_S):
    """Wait for a condition; return its value."""
    end = time.monotonic() + patience_s
    while not (found := condition()):
        assert time.monotonic() < end
        time.sleep(0.005)
    return found


class Reply:
    """A response over HTTP."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)


def ask(port, path, value=None, *, headers=None, method=None, tls=None):
    """Send a request on a connection of its own; a value is JSON for POST. tls: a context, for HTTPS."""
    data = value if isinstance(value, bytes) or value is None else json.dumps(value).encode()
    request = urllib.request.Request(
        f"{'https' if tls else 'http'}://127.0.0.1:{port}{path}", data, headers or {}, method=method
    )
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S, context=tls) as found:
            return Reply(found.status, found.headers, found.read())
    except urllib.error.HTTPError as error:
        return Reply(error.code, error.headers, error.read())


def inputs(*values, **parameters):
    """Return the JSON of an inference request with one input x."""
    tensor = {"name": "x", "datatype": "FP32", "shape": [len(values)], "data": list(values)}
    return {"inputs": [tensor], **({"parameters": parameters} if parameters else {})}


def outputs(reply):
    assert reply.status == 200, reply.body
    return reply.json["outputs"][0]["data"]


class Raw:
    """A connection of a client that sends any bytes."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
        self.file = self.socket.makefile("rb")

    def send(self, data):
        self.socket.sendall(data)

    def receive(self):
        """Return status, header fields and body of the next response; None at the end."""
        line = self.file.readline()
        if not line:
            return None
        fields = {}
        while (field := self.file.readline()) not in (b"\r\n", b""):
            name, _, value = field.decode().partition(":")
            fields[name.lower()] = value.strip()
        body = self.file.read(int(fields.get("content-length", 0)))
        return int(line.split()[1]), fields, body

    def is_at_end(self):
        return self.file.read(1) == b""

    def close(self):
        self.file.close()
        self.socket.close()
