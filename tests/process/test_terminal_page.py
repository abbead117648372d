"""The example of docs/operate/terminal.md is what a server shows."""

import re
import shutil
from pathlib import Path

import pytest
from conformance.launcher import free_ports

from .console import Console

ROOT = Path(__file__).parents[2]
PORTS = ("8000", "8001", "8002")


def comparable(text):
    """Replace what differs from start to start."""
    text = re.sub(r"\d+\.\d s\b", "0.0 s", text)
    return re.sub(r"^core \S+ loads", "core 0 loads", text, flags=re.MULTILINE)


@pytest.fixture
def shown(tmp_path):
    """What a server shows of the repository of the example."""
    models = tmp_path / "models"
    shutil.copytree(ROOT / "examples/models/wine_label", models / "wine_label")
    (models / "iris").mkdir()
    (models / "iris/model.onnx").write_bytes(b"")
    ports = [str(port) for port in free_ports(3)]
    names = ("http", "grpc", "metrics")
    flags = [f"--{name}-port={port}" for name, port in zip(names, ports, strict=True)]
    console = Console(
        "--terminal=auto",
        "--exit-on-error=false",
        "--model-repository=models",
        *flags,
        cwd=tmp_path,
        columns=120,
    )
    try:
        console.until(r"  try .*\n\n")
        console.press(b"\x03")
        assert console.end() == 0
    finally:
        console.kill()
    text = console.text.replace("127.0.0.1", "localhost")  # the name for every address
    for port, usual in zip(ports, PORTS, strict=True):
        text = text.replace(port, usual)
    return text


def test_the_example_of_the_page_is_what_a_server_shows(shown):
    page = (ROOT / "docs/operate/terminal.md").read_text()
    block = re.search(r"^```text\n\$ core serve models[^\n]*\n(.*?)^```", page, re.M | re.S)

    assert comparable(shown) == comparable(block[1])
