"""Frames of HTTP/2, and what a connection of gRPC runs on: a loop and a transport without a socket."""

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY, WINDOW = 0, 1, 3, 4, 6, 7, 8


def frame(kind, stream=0, payload=b"", flags=0):
    return (
        len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload
    )


def kinds(data):
    """Return kind and stream of each frame."""
    found, at = [], 0
    while at < len(data):
        found.append((data[at + 3], int.from_bytes(data[at + 5 : at + 9], "big")))
        at += 9 + int.from_bytes(data[at : at + 3], "big")
    return found


class Loop:
    """An event loop whose callbacks run when a test says so."""

    def __init__(self):
        self._calls = []

    def call_soon(self, function):
        self._calls.append(function)

    def call_later(self, delay_s, function):
        pass

    def run(self):
        while self._calls:
            self._calls.pop(0)()


class Transport:
    """A transport without a socket.

    error      None, or what `write` raises
    buffered   bytes that were written, and that it has not sent
    """

    def __init__(self, error=None):
        self.sent, self.is_aborted, self.error, self.buffered = b"", False, error, 0

    def write(self, data):
        if self.error is not None:
            raise self.error
        self.sent += data

    def writelines(self, pieces):
        self.write(b"".join(pieces))

    def get_write_buffer_size(self):
        return self.buffered

    def close(self):
        self.is_aborted = True

    abort = close
