"""Recorder: a server on loopback that forwards requests to an emulator, and can modify the responses.

It makes it possible to count the requests of a model server to its store, and to break a transfer.
"""

import http.client
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_HOP_BY_HOP = {"connection", "transfer-encoding", "keep-alive", "content-length"}


class Recorder:
    """A proxy in front of an emulator, which records its requests and can spoil responses.

    requests   "GET /path?query" of each request, in order
    hosts      the header Host of each request, in order
    spoil      request → None, a status, or a function of the body that returns the bytes to send
    """

    def __init__(self, port):
        self.requests = []
        self.hosts = []
        self.spoil = lambda request: None
        recorder = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                recorder._answer(self, port)

            do_HEAD = do_GET

            def log_message(self, *args):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), name="recorder", daemon=True
        )
        self._thread.start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _answer(self, handler, port):
        request = f"{handler.command} {handler.path}"
        self.requests.append(request)
        self.hosts.append(handler.headers.get("Host", ""))
        spoiled = self.spoil(request)
        if isinstance(spoiled, int):
            handler.send_response(spoiled)
            handler.send_header("Content-Length", "0")
            handler.end_headers()
            return
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        try:
            connection.request(handler.command, handler.path, headers=dict(handler.headers))
            answer = connection.getresponse()
            body = answer.read()
        finally:
            connection.close()
        sent = spoiled(body) if spoiled else body
        length = answer.getheader("Content-Length") if handler.command == "HEAD" else len(body)
        handler.send_response(answer.status, answer.reason)
        for name, value in answer.getheaders():
            if name.lower() not in _HOP_BY_HOP:
                handler.send_header(name, value)
        if len(sent) < len(body):
            handler.send_header("Connection", "close")
            handler.close_connection = True
        handler.send_header("Content-Length", str(length or 0))
        handler.end_headers()
        if handler.command != "HEAD":
            try:
                handler.wfile.write(sent)
            except BrokenPipeError:  # the client wanted only the beginning
                handler.close_connection = True
