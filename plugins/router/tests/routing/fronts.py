"""What may stand before servers: core router, and other proxies by the files of benchmarks/proxies."""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

PROXIES = Path(__file__).parents[2] / "benchmarks" / "proxies"
START_S = 60.0
_FILES = {
    "nginx": "nginx.conf",
    "haproxy": "haproxy.cfg",
    "envoy": "envoy.yaml",
    "envoy_load_reports": "envoy_load_reports.yaml",
}


def free_ports(count):
    """Return ports that are not in use."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    found = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return found


def program(name):
    """Return the program of a proxy; None if it is not installed. Some come as packages of Python."""
    found = name.partition("_")[0]
    return shutil.which(found) or shutil.which(found, path=str(Path(sys.executable).parent))


def is_installed(name):
    return program(name) is not None


def configuration(name, servers, ports):
    """Return a proxy's file of benchmarks/proxies with other addresses.

    servers   ports for HTTP and gRPC of three servers on this machine, in place of gpu1 to gpu3; a third
              port of each, for metrics, is the router's only
    ports     for HTTP and gRPC of the proxy, in place of 8000 and 8001
    """
    text = (PROXIES / _FILES[name]).read_text()
    for number, (http, grpc, *_) in enumerate(servers, 1):
        for usual, port in ((8000, http), (8001, grpc)):
            text = text.replace(f"gpu{number}:{usual}", f"127.0.0.1:{port}")
            text = text.replace(
                f"address: gpu{number}, port_value: {usual}",
                f"address: 127.0.0.1, port_value: {port}",
            )
        # haproxy checks over HTTP what it serves over gRPC.
        text = re.sub(rf"(server gpu{number} .*) port 8000", rf"\1 port {http}", text)
    for usual, port in zip((8000, 8001), ports, strict=True):
        text = re.sub(rf"(listen |bind :|port_value: ){usual}\b", rf"\g<1>{port}", text)
    return text


def command(name, servers, ports, folder, changes=()):
    """Return the command that starts a front in the foreground.

    changes   (old, new) texts of the file
    """
    if name == "router":
        addresses = ",".join(":".join(["127.0.0.1", *map(str, each)]) for each in servers)
        return [
            *(sys.executable, "-m", "core", "router", f"--servers={addresses}"),
            *(f"--http-port={ports[0]}", f"--grpc-port={ports[1]}", "--admin-port=0"),
        ]
    file = folder / _FILES[name]
    text = configuration(name, servers, ports)
    for old, new in changes:
        assert old in text, f"{file.name} has no '{old}'"
        text = text.replace(old, new)
    file.write_text(text)
    if name == "nginx":
        more = f"daemon off; pid {folder}/nginx.pid; error_log stderr warn;"
        return [program(name), "-p", str(folder), "-c", str(file), "-g", more]
    if name == "haproxy":
        return [program(name), "-db", "-f", str(file)]
    # Without its hot restart, several can run on one machine.
    return [program(name), "--disable-hot-restart", "--concurrency", "1", "-c", str(file)]


@contextlib.contextmanager
def front(name, servers, folder, cores=None, changes=()):
    """Start a front; yield its process id and its ports for HTTP and gRPC.

    cores     processors of its process; None for all
    changes   (old, new) texts of its file
    """
    ports = free_ports(2)
    with open(folder / f"{name}.log", "wb") as log:
        process = subprocess.Popen(
            command(name, servers, ports, folder, changes),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=None if cores is None else lambda: os.sched_setaffinity(0, cores),
        )
    try:
        for port in ports:
            _wait(port, process, folder / f"{name}.log")
        yield process.pid, ports
    finally:
        # haproxy and nginx have workers of their own in the session.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _wait(port, process, log):
    end = time.monotonic() + START_S
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise RuntimeError(f"port {port} is not open: {log.read_text()[-2000:]}")
