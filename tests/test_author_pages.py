"""docs/write/write-a-backend.md from its first to its last command: its blocks make a backend that works."""

import os
import re
import shlex
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = next((ROOT / "docs").rglob("write-a-backend.md"))
EXAMPLE = ROOT / "examples" / "backends" / "affine"
PATIENCE_S = 60


def shown(file):
    """Return what the page shows of a file of the example, in the order of the file."""
    text = (EXAMPLE / file).read_text()
    pattern = rf"^`examples/backends/affine/{re.escape(file)}`:\n\n```\w+\n(.*?)```"
    blocks = re.findall(pattern, PAGE.read_text(), re.M | re.S)
    lines = {line for block in blocks for line in block.splitlines() if line.strip()}
    return "".join(
        line for line in text.splitlines(True) if line.strip("\n") in lines or line == "\n"
    )


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Make a backend as `make new-backend` does, write the blocks of the page into it, and install it."""
    parent = tmp_path_factory.mktemp("backends")
    make = [sys.executable, ROOT / "examples" / "new_distribution.py", "backend", "affine", parent]
    subprocess.run(make, check=True, capture_output=True)
    folder, site = parent / "affine", parent / "site"
    for file in ("__init__.py", "conformance.py"):
        (folder / "backend_affine" / file).write_text(shown(f"backend_affine/{file}"))
    (folder / "tests" / "test_affine.py").write_text(shown("tests/test_affine.py"))
    project = (folder / "pyproject.toml").read_text()
    for entries in shown("pyproject.toml").strip().split("\n\n"):
        title = entries.partition("\n")[0]
        project = re.sub(rf"^{re.escape(title)}\n(.+\n)+", f"{entries}\n", project, flags=re.M)
    (folder / "pyproject.toml").write_text(project)
    install = [
        *("-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"),
        "--no-index",
    ]
    subprocess.run(
        [sys.executable, *install, "--target", str(site), "."],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    return {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(site),
        "FOLDER": str(folder),
    }


def test_the_page_shows_every_line_of_the_module():
    text = (EXAMPLE / "backend_affine" / "__init__.py").read_text()
    everything = [line for line in text.splitlines()[1:] if line.strip()]  # without the docstring

    assert [line for line in shown("backend_affine/__init__.py").splitlines() if line] == everything


def test_a_new_backend_with_the_blocks_of_the_page_passes_its_tests(environment):
    for arguments in (["core_testing", "affine"], ["pytest", "tests"]):
        done = subprocess.run(
            [sys.executable, "-m", *arguments, "-q", "-p", "no:cacheprovider"],
            cwd=environment["FOLDER"],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert " passed" in done.stdout


def test_the_commands_of_the_page_print_what_it_says(environment, tmp_path):
    block = re.search(
        r"## Serve a model\n\n<!-- .* -->\n```console\n(.*?)```", PAGE.read_text(), re.S
    )[1]
    *before, serve, ask, expected = block.splitlines()
    http, grpc, metrics = (free_port() for _ in range(3))
    ports = [f"--http-port={http}", f"--grpc-port={grpc}", f"--metrics-port={metrics}"]
    for command in before:
        subprocess.run(
            command.removeprefix("$ "), shell=True, check=True, cwd=tmp_path, env=environment
        )
    log = (tmp_path / "log").open("w")
    server = subprocess.Popen(
        [*shlex.split(serve.removeprefix("$ ")), *ports, "--http-address=127.0.0.1"],
        cwd=tmp_path,
        env=environment,
        stderr=log,
        stdout=log,
    )
    try:
        wait_for_port(http, server)
        done = subprocess.run(
            ask.removeprefix("$ ").replace("localhost:8000", f"127.0.0.1:{http}"),
            shell=True,
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path,
        )
    finally:
        server.terminate()
        server.wait(PATIENCE_S)
        log.close()

    assert done.stdout.strip() == expected, (tmp_path / "log").read_text()


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def wait_for_port(port, server):
    """Wait until the server is ready: a request for it waits for the models."""
    ready = f"http://127.0.0.1:{port}/v2/health/ready"
    deadline = time.monotonic() + PATIENCE_S
    while subprocess.run(["curl", "-sf", ready], check=False).returncode:
        assert server.poll() is None, "the server has ended"
        assert time.monotonic() < deadline, "the server is not ready"
        time.sleep(0.1)
