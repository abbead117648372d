"""A log of the payloads of inference requests: --payload-log=FILE writes a line of JSON for each."""

import json
import queue
import threading

import core
from frontends.shared.call_observers import CallObservers


@core.hookimpl
def core_add_options(parser):
    parser.add("payload-log", "", "File to which payloads of inference requests are written.")


@core.hookimpl
def core_server_starting(server):
    if path := server.options.added["payload_log"]:
        CallObservers.of(server).add(PayloadLog(path))


class PayloadLog:
    """A thread writes the file: observers run on the event loop and must not wait for a disk."""

    def __init__(self, path):
        self._ended = queue.SimpleQueue()
        threading.Thread(target=self._write, args=(path,), daemon=True).start()

    def begin(self, call):
        """Return what observes the call; None if it is no inference."""
        return Payloads(call, self._ended.put) if call.category == "inference" else None

    def _write(self, path):
        with open(path, "a") as file:
            while True:
                payloads = self._ended.get()
                line = {"target": payloads.call.target, "status": payloads.status}
                line["received"] = text(payloads.received)
                line["sent"] = text(payloads.sent)
                file.write(json.dumps(line) + "\n")
                file.flush()


class Payloads:
    def __init__(self, call, done):
        self.call, self.done = call, done
        self.received, self.sent, self.status = [], [], None

    def receive(self, message):
        self.received.append(message)

    def send(self, message):
        self.sent.append(message)

    def end(self, status, head):
        self.status = status
        self.done(self)


def text(messages):
    """Return messages as text. A message is an object with the bytes, or a list of them."""
    parts = [part for each in messages for part in (each if isinstance(each, list) else [each])]
    return b"".join(parts).decode("utf-8", "backslashreplace")
