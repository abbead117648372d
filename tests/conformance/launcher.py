"""Starts the server under test and ends it.

Two kinds of server can be tested:

* ``core``    ``python -m core.serve`` of the running environment;
* ``triton``  the ``tritonserver`` program that an installed nvidia-pytriton carries. Its package may be
  in another environment: name that environment's site-packages with ``--pytriton-site``.

Servers are always ended by their process id.
"""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

from conformance.model import as_model
from conformance.server import Server, StartError

START_TIMEOUT = float(os.environ.get("CONFORMANCE_START_TIMEOUT", "120"))


def free_ports(count):
    """Ports that nothing listens on now."""
    sockets = []
    for _ in range(count):
        sock = socket.socket()
        sock.bind(("127.0.0.1", 0))
        sockets.append(sock)
    ports = [sock.getsockname()[1] for sock in sockets]
    for sock in sockets:
        sock.close()
    return ports


class Launcher:
    def __init__(self, config):
        self.kind = config.getoption("--server", "core")
        self.site = config.getoption("--pytriton-site", None)
        self.engine = config.getoption("--grpc-engine", "auto")
        self.lane = config.getoption("--http-lane", "auto")
        self.keep_logs = config.getoption("--keep-logs", None)
        self.capture = config.getoption("--capture-traffic", None)
        self._servers = []
        self._runtime = None
        self._count = 0

    # the program ---------------------------------------------------------
    def _triton(self):
        """Command, environment and options of the bundled tritonserver."""
        if self.site is None:
            import importlib.util

            spec = importlib.util.find_spec("pytriton")
            if spec is None:
                raise RuntimeError("--server=triton needs nvidia-pytriton, or --pytriton-site")
            self.site = pathlib.Path(spec.submodule_search_locations[0]).parent
        site = pathlib.Path(self.site).resolve()
        bundle = site / "pytriton" / "tritonserver"
        if self._runtime is None:
            self._runtime = pathlib.Path(tempfile.mkdtemp(prefix="conformance-triton-"))
            shutil.copytree(
                bundle / "backends",
                self._runtime / "backends",
                ignore=shutil.ignore_patterns("__pycache__"),
            )
            version = "{}.{}".format(*sys.version_info)
            shutil.copy(
                bundle / "python_backend_stubs" / version / "triton_python_backend_stub",
                self._runtime / "backends" / "python",
            )
        environment = dict(os.environ)
        environment["LD_LIBRARY_PATH"] = ":".join(
            [str(site / "nvidia_pytriton.libs")]
            + [part for part in [os.environ.get("LD_LIBRARY_PATH")] if part]
        )
        # The interpreter of that environment: this one has another triton_python_backend_utils.
        environment["PATH"] = f"{site.parents[2] / 'bin'}:{environment['PATH']}"
        return (
            [
                str(bundle / "bin" / "tritonserver"),
                f"--backend-directory={self._runtime / 'backends'}",
                f"--cache-directory={bundle / 'caches'}",
            ],
            environment,
        )

    def command(self):
        if self.kind == "triton":
            return self._triton()
        environment = dict(os.environ)
        environment["PATH"] = f"{pathlib.Path(sys.executable).parent}:{environment['PATH']}"
        # Newer servers disable client shared memory by default; the original of 24.10 has no such option.
        return [
            *(sys.executable, "-m", "core.serve"),
            *("--allow-client-shm=true", f"--grpc-engine={self.engine}"),
            f"--http-lane={self.lane}",
        ], environment

    # servers -------------------------------------------------------------
    def start(
        self, models, *options, wait="ready", source=None, environment=None, timeout=START_TIMEOUT
    ):
        """Start a server with those models and options.

        ``wait`` is "ready", "live" or "grpc": what must answer before the
        server counts as started; "exit" waits until it has ended.
        """
        self._count += 1
        folder = pathlib.Path(tempfile.mkdtemp(prefix=f"conformance-{self._count}-"))
        repository = folder / "repository"
        repository.mkdir()
        for entry in models:
            as_model(entry).write(repository, source)
        ports = free_ports(3)
        log_path = folder / "server.log"
        if self.keep_logs:
            os.makedirs(self.keep_logs, exist_ok=True)
            log_path = pathlib.Path(self.keep_logs) / f"server-{self._count}.log"
        command, base = self.command()
        command = [
            *command,
            f"--model-repository={repository}",
            f"--http-port={ports[0]}",
            f"--grpc-port={ports[1]}",
            f"--metrics-port={ports[2]}",
            *options,
        ]
        if self.capture:
            command += self._captured(repository, options, environment)
        # Names of models may hold any character, whatever the locale is.
        base.update({"LC_ALL": "C.UTF-8", "PYTHONUTF8": "1"})
        base.update(environment or {})
        with open(log_path, "wb") as log:
            process = subprocess.Popen(
                command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=base
            )
        label = f"server {self._count} ({self.kind}, pid {process.pid})"
        server = Server(process, repository, ports, log_path, label, folder)
        self._servers.append(server)
        self._wait(server, wait, timeout)
        return server

    def _captured(self, repository, options, environment):
        """Keep what starts this server again, and return the options that record its requests."""
        folder = pathlib.Path(self.capture) / f"server-{self._count}"
        shutil.copytree(repository, folder / "repository", symlinks=True)
        kept = {
            "repository": str(repository),
            "options": [str(each) for each in options],
            "environment": environment or {},
        }
        (folder / "server.json").write_text(json.dumps(kept))
        return [
            *(f"--capture={folder / 'traffic'}", "--capture-answers=true"),
            "--capture-category=model-repository",
        ]

    def _wait(self, server, wait, timeout):
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if server.process.poll() is not None:
                if wait == "exit":
                    return
                raise StartError(
                    f"{server.label} ended with {server.process.returncode}",
                    server.process.returncode,
                    server.log_text(),
                )
            if wait != "exit" and self._up(server, wait):
                return
            time.sleep(0.05)
        log = server.log_text()
        server.stop(wait=False)
        raise StartError(f"{server.label}: no '{wait}' in {timeout} s", None, log)

    @staticmethod
    def _up(server, wait):
        if wait == "grpc":
            from tritonclient.utils import InferenceServerException

            try:
                return server.grpc_client().is_server_ready()
            except InferenceServerException:
                return False
        try:
            return server.get(f"/v2/health/{wait}", timeout=5).status == 200
        except OSError:
            return False

    def running(self):
        return [server for server in self._servers if server.process.poll() is None]

    def stop_all(self, wait):
        for server in self._servers:
            server.stop(wait=False)
        if wait:
            for server in self._servers:
                server.stop(wait=True)
            if self._runtime is not None:
                shutil.rmtree(self._runtime, ignore_errors=True)
