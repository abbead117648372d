"""The program of docs/start/drop-in.md: Triton's flags and exit statuses, and the arguments of KServe."""

import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

PROGRAM = str(Path(sys.executable).with_name("tritonserver"))

# All flags of tritonserver 2.51 (24.10), and the alias that KServe uses.
FLAGS = [
    "allow-cpu-metrics",
    "allow-gpu-metrics",
    "allow-grpc",
    "allow-http",
    "allow-metrics",
    "allow-sagemaker",
    "allow-vertex-ai",
    "backend-config",
    "backend-directory",
    "buffer-manager-thread-count",
    "cache-config",
    "cache-directory",
    "cuda-memory-pool-byte-size",
    "cuda-virtual-address-size",
    "disable-auto-complete-config",
    "enable-peer-access",
    "exit-on-error",
    "exit-timeout-secs",
    "grpc-address",
    "grpc-header-forward-pattern",
    "grpc-http2-max-ping-strikes",
    "grpc-http2-max-pings-without-data",
    "grpc-http2-min-recv-ping-interval-without-data",
    "grpc-infer-allocation-pool-size",
    "grpc-infer-response-compression-level",
    "grpc-keepalive-permit-without-calls",
    "grpc-keepalive-time",
    "grpc-keepalive-timeout",
    "grpc-max-connection-age",
    "grpc-max-connection-age-grace",
    "grpc-port",
    "grpc-restricted-protocol",
    "grpc-root-cert",
    "grpc-server-cert",
    "grpc-server-key",
    "grpc-use-ssl",
    "grpc-use-ssl-mutual",
    "help",
    "host-policy",
    "http-address",
    "http-header-forward-pattern",
    "http-port",
    "http-restricted-api",
    "http-thread-count",
    "id",
    "load-model",
    "log-error",
    "log-file",
    "log-format",
    "log-info",
    "log-verbose",
    "log-warning",
    "metrics-address",
    "metrics-config",
    "metrics-interval-ms",
    "metrics-port",
    "min-supported-compute-capability",
    "model-config-name",
    "model-control-mode",
    "model-load-gpu-limit",
    "model-load-retry-count",
    "model-load-thread-count",
    "model-namespacing",
    "model-repository",
    "model-store",
    "pinned-memory-pool-byte-size",
    "rate-limit",
    "rate-limit-resource",
    "repoagent-directory",
    "repository-poll-secs",
    "response-cache-byte-size",
    "reuse-grpc-port",
    "reuse-http-port",
    "sagemaker-port",
    "sagemaker-safe-port-range",
    "sagemaker-thread-count",
    "strict-model-config",
    "strict-readiness",
    "trace-config",
    "trace-count",
    "trace-file",
    "trace-level",
    "trace-log-frequency",
    "trace-rate",
    "vertex-ai-default-model",
    "vertex-ai-port",
    "vertex-ai-thread-count",
]


def run(*arguments, timeout=30):
    """Run the program to its end; return (exit status, output)."""
    found = subprocess.run(
        [PROGRAM, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout,
    )
    return found.returncode, found.stdout


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    found = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return found


class Running:
    """The program, until the end of the block; `end(signal)` returns its exit status."""

    def __init__(self, *arguments):
        self.http, self.grpc, self.metrics = free_ports(3)
        self._arguments = [
            each.format(http=self.http, grpc=self.grpc, metrics=self.metrics) for each in arguments
        ]

    def __enter__(self):
        self.process = subprocess.Popen(
            [PROGRAM, *self._arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.wait("/v2/health/live")
        return self

    def __exit__(self, *error):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def wait(self, path):
        """Return when the program answers with status 200."""
        end = time.monotonic() + 30
        while self.get(path) is None:
            assert self.process.poll() is None and time.monotonic() < end, f"no answer for {path}"
            time.sleep(0.05)

    def get(self, path):
        """Return the body; None without an answer of status 200."""
        try:
            with urllib.request.urlopen(
                f"http://127.0.0.1:{self.http}{path}", timeout=2
            ) as response:
                return response.read()
        except OSError:
            return None

    def end(self, number):
        self.process.send_signal(number)
        return self.process.wait(timeout=30)


PORTS = ("--http-port={http}", "--grpc-port={grpc}", "--metrics-port={metrics}")


def test_help_lists_every_flag_of_triton_and_exits_with_1():
    status, text = run("--help")

    listed = set(re.findall(r"^\s+--([a-z0-9-]+)", text, re.MULTILINE))
    assert status == 1
    assert set(FLAGS) - listed == set()


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["--nosuchflag=1"], "unrecognized option '--nosuchflag=1'"),
        ([], "error: creating server: Invalid argument - --model-repository must be specified"),
        (["--model-repository=/nowhere"], "error: creating server: Internal - "),
        (["--model-repository=/tmp", "--log-verbose=abc"], "Invalid option value. Got abc"),
        (
            ["--model-repository=/tmp", "--model-control-mode=abc"],
            "invalid argument for --model-control",
        ),
        (
            ["--model-repository=/tmp", "--load-model=m"],
            "Error: Use of '--load-model' requires setting '--model-control-mode=explicit' as well.",
        ),
    ],
)
def test_a_wrong_command_line_exits_with_1(arguments, said):
    status, text = run(*arguments)

    assert status == 1
    assert said in text


def test_a_failed_model_exits_with_1_unless_the_flag_permits_it(tmp_path):
    (tmp_path / "m" / "1").mkdir(parents=True)
    (tmp_path / "m" / "config.pbtxt").write_text('backend: "none"')
    repository = f"--model-repository={tmp_path}"

    with_ports = [f"--{name}-port=0" for name in ("http", "grpc", "metrics")]
    status, text = run(repository, *with_ports)
    assert status == 1
    assert "error: creating server: Internal - failed to load all models" in text

    with Running(repository, "--exit-on-error=false", *PORTS) as server:
        assert server.end(signal.SIGTERM) == 0


def test_a_port_in_use_exits_with_1(repository):
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        port = taken.getsockname()[1]

        status, text = run(
            f"--model-repository={repository}",
            f"--http-port={port}",
            "--grpc-port=0",
            "--metrics-port=0",
        )

    assert status == 1
    assert f"Socket '0.0.0.0:{port}' already in use" in text


def test_kserves_arguments_serve_a_copy_of_its_mount(repository, tmp_path):
    """/mnt/models of KServe: <name>/<version>, behind a link of the storage initializer."""
    mount = tmp_path / "mnt" / "models"
    mount.mkdir(parents=True)
    (mount / "identity").symlink_to(repository / "identity")

    with Running(
        f"--model-store={mount}",
        "--grpc-port={grpc}",
        "--http-port={http}",
        "--allow-grpc=true",
        "--allow-http=true",
        "--metrics-port={metrics}",
    ) as server:
        server.wait("/v2/models/identity/ready")
        assert b'"identity"' in server.get("/v2/models/identity")
        assert server.end(signal.SIGINT) == 0
