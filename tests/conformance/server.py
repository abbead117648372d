"""A running server, and the plain ways to talk to it."""

import http.client
import json
import pathlib
import shutil
import signal
import socket
import subprocess
import threading

from conformance.model import as_model


def without_tables(log):
    """The log without the tables that a server prints at its start."""
    return "".join(
        line
        for line in log.splitlines(keepends=True)
        if line[:1] not in ("|", "+") and line.strip()
    )


class StartError(RuntimeError):
    """The server ended, or did not get ready in time."""

    def __init__(self, message, returncode, log):
        super().__init__(f"{message}\n{without_tables(log)[-3000:]}")
        self.returncode = returncode
        self.log = log


class Response:
    """What one HTTP exchange gave."""

    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        return self.json["error"]


class Server:
    def __init__(self, process, repository, ports, log_path, label, folder):
        self.process = process
        self.repository = pathlib.Path(repository)
        self.http_port, self.grpc_port, self.metrics_port = ports
        self.log_path = log_path
        self.label = label
        self.folder = folder
        self._stopping = None

    # addresses -----------------------------------------------------------
    @property
    def http_address(self):
        return f"127.0.0.1:{self.http_port}"

    @property
    def grpc_address(self):
        return f"127.0.0.1:{self.grpc_port}"

    # clients -------------------------------------------------------------
    def http_client(self, **kwargs):
        import tritonclient.http

        kwargs.setdefault("network_timeout", 60.0)
        kwargs.setdefault("connection_timeout", 60.0)
        return tritonclient.http.InferenceServerClient(self.http_address, **kwargs)

    def grpc_client(self, **kwargs):
        import tritonclient.grpc

        return tritonclient.grpc.InferenceServerClient(self.grpc_address, **kwargs)

    # HTTP ----------------------------------------------------------------
    def request(self, method, path, body=None, headers=None, port=None, timeout=60):
        connection = http.client.HTTPConnection(
            "127.0.0.1", port or self.http_port, timeout=timeout
        )
        try:
            if isinstance(body, (dict, list)):
                body = json.dumps(body)
            if isinstance(body, str):
                body = body.encode()
            connection.request(method, path, body=body, headers=headers or {})
            response = connection.getresponse()
            return Response(response.status, response.headers, response.read())
        finally:
            connection.close()

    def get(self, path, **kwargs):
        return self.request("GET", path, **kwargs)

    def post(self, path, body=None, **kwargs):
        return self.request("POST", path, body=body if body is not None else b"", **kwargs)

    def infer(self, model, body, headers=None, version=None, **kwargs):
        path = f"/v2/models/{model}"
        if version is not None:
            path += f"/versions/{version}"
        return self.post(path + "/infer", body, headers=headers, **kwargs)

    def raw(self, data, timeout=20, port=None, close_write=False):
        """Send exact bytes; return every byte of the server's response."""
        chunks = []
        with socket.create_connection(
            ("127.0.0.1", port or self.http_port), timeout=timeout
        ) as sock:
            try:
                sock.sendall(data)
                if close_write:
                    sock.shutdown(socket.SHUT_WR)
            except (BrokenPipeError, ConnectionResetError):
                pass
            sock.settimeout(timeout)
            try:
                while True:
                    chunk = sock.recv(65536)
                    if not chunk:
                        break
                    chunks.append(chunk)
                    if _complete(b"".join(chunks)):
                        break
            except (TimeoutError, ConnectionResetError):
                pass
        return b"".join(chunks)

    def metrics_text(self):
        return self.get("/metrics", port=self.metrics_port).body.decode()

    def metrics(self):
        """{(sample name, frozenset of labels): value}"""
        from prometheus_client.parser import text_string_to_metric_families

        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(self.metrics_text())
            for sample in family.samples
        }

    def metric(self, name, **labels):
        """The one sample with that name and at least those labels, or None."""
        wanted = set(labels.items())
        found = [
            value
            for (sample, have), value in self.metrics().items()
            if sample in (name, name + "_total") and wanted <= have
        ]
        assert len(found) <= 1, f"{len(found)} samples of {name} {labels}"
        return found[0] if found else None

    def stats(self, model, version="1"):
        """The statistics of one version of a model."""
        answer = self.get(f"/v2/models/{model}/versions/{version}/stats").json
        return answer["model_stats"][0]

    def ready(self, model, version=None):
        path = f"/v2/models/{model}" + (f"/versions/{version}" if version else "")
        return self.get(path + "/ready").status == 200

    def alive(self):
        return self.process.poll() is None and self.get("/v2/health/live").status == 200

    def log_text(self):
        return pathlib.Path(self.log_path).read_text(errors="replace")

    def log_tail(self, size=2000):
        return without_tables(self.log_text())[-size:]

    # repository ----------------------------------------------------------
    def add_model(self, entry):
        return as_model(entry).write(self.repository)

    def remove_model(self, name):
        shutil.rmtree(self.repository / name)

    # end -----------------------------------------------------------------
    def stop(self, wait=True, timeout=40):
        if self._stopping is None:
            if self.process.poll() is None:
                self.process.send_signal(signal.SIGTERM)
            self._stopping = threading.Thread(target=self._reap, args=(timeout,))
            self._stopping.start()
        if wait:
            self._stopping.join()

    def _reap(self, timeout):
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def _complete(data):
    """Whether data holds one whole HTTP response."""
    head, separator, body = data.partition(b"\r\n\r\n")
    if not separator:
        return False
    headers = head.lower()
    if b"transfer-encoding: chunked" in headers:
        return body.endswith(b"0\r\n\r\n")
    for line in headers.split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return len(body) >= int(line.split(b":")[1])
    return False
