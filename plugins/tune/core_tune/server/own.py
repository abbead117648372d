"""OwnServer: a server process on the loopback interface with the repository of one model."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from core_bench.model.address import Address
from core_bench.model.control import HttpControl, error_of
from core_bench.plan import Side

from core.errors import CoreError, Kind, internal
from core_tune import signals

_START_S = 120.0
_LOAD_S = 600.0
_STOP_S = 35.0
_LOOK_S = 0.05
_SHOWN = 2000  # characters of its log, if it does not start


class OwnServer:
    """Use as a context manager. Raises CoreError if it does not start, or the model does not load.

    url       HOST:PORT for the protocol
    address   for HTTP
    workers   processes that serve
    """

    def __init__(self, repository: Path, model: str, protocol: str, flags: Sequence[str] = ()):
        http_port, grpc_port = free_ports(2)
        self.url = f"127.0.0.1:{grpc_port if protocol == 'grpc' else http_port}"
        self.address = Address("127.0.0.1", http_port)
        self._model = model
        # Its standard error is not a pipe: it would block when nothing reads it.
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  stop() closes it
        command = [sys.executable, "-m", "core.serve", f"--model-repository={repository}"]
        command += ["--model-control-mode=explicit", "--allow-metrics=false"]
        command += ["--http-address=127.0.0.1", f"--http-port={http_port}"]
        command += ["--grpc-address=127.0.0.1", f"--grpc-port={grpc_port}"]
        command += ["--allow-client-shm=true", f"--allow-grpc={str(protocol == 'grpc').lower()}"]
        self._command = [*command, *flags]
        self._process: subprocess.Popen[bytes] | None = None
        self._start(1)

    def __enter__(self) -> OwnServer:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def restart(self, workers: int) -> None:
        """Start the server anew with so many processes, at the same ports. Raises like the first start."""
        self._end()
        self._start(workers)

    def stop(self) -> None:
        """End the process, and wait for it."""
        self._end()
        self._log.close()

    def _start(self, workers: int) -> None:
        self.workers = workers
        more = [f"--workers={workers}"] if workers > 1 else []
        try:
            with signals.held():  # until the process is known, so that it is ended too
                # In a session of its own: Ctrl-C of a terminal reaches only the command.
                process = self._process = subprocess.Popen(
                    [*self._command, *more],
                    stdin=subprocess.DEVNULL,
                    stdout=self._log,
                    stderr=self._log,
                    start_new_session=True,
                )
            self._wait(process)
            self._load(self._model)
        except BaseException:
            self.stop()
            raise

    def _end(self) -> None:
        if (process := self._process) is None:
            return
        if process.poll() is None:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_STOP_S)
        if process.poll() is None:
            process.kill()
            process.wait()

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        end = time.monotonic() + _START_S
        while not self._is_live():
            if process.poll() is not None:
                raise CoreError(Kind.INVALID, f"the server ended at its start:\n{self._text()}")
            if time.monotonic() > end:
                raise internal(f"the server is not live after {_START_S:.0f} s:\n{self._text()}")
            time.sleep(_LOOK_S)

    def _is_live(self) -> bool:
        try:
            return self._control().ask("GET", "/v2/health/live")[0] == 200
        except CoreError:
            return False

    def _load(self, model: str) -> None:
        status, found = self._control().ask(
            "POST", f"/v2/repository/models/{model}/load", {}, _LOAD_S
        )
        if status != 200:
            raise CoreError(Kind.INVALID, error_of(found) or f"the load has status {status}")

    def _control(self) -> HttpControl:
        return HttpControl(Side("", "", ""), self.address)

    def _text(self) -> str:
        self._log.seek(0)
        return self._log.read().decode(errors="replace")[-_SHOWN:].strip()


def free_ports(count: int) -> list[int]:
    """Return different free ports of the loopback interface."""
    with contextlib.ExitStack() as stack:
        bound = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in bound:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in bound]
