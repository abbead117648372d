"""Models of torch that a server loads at the same time all load."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

EIGHT = 8
STARTS = int(os.environ.get("TORCH_STARTS", "2"))  # set 100 for a thorough run
COMPILED = """
backend: "pytorch" runtime: "model.py" max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ 3 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 3 ] } ]
parameters { key: "TORCH_COMPILE_OPTIONAL_PARAMETERS" value { string_value: "{}" } }
"""
MODULE = """
import torch

class Twice(torch.nn.Module):
    def forward(self, x):
        return x * 2
"""
# A separate process: this one has already imported what torch imports on first use.
START = """
import asyncio, sys
from core.options import Options
from core.server import InferenceServer

async def main():
    server = InferenceServer(Options.defaults(model_repository=[sys.argv[1]]))
    try:
        await server.start()
    finally:
        print(sorted((each.name, each.state, each.reason) for each in server.models.versions()))
        await server.stop(60)

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Write a file of torch.export, and return its path."""
    file = tmp_path_factory.mktemp("exported") / "model.pt2"
    rows = torch.export.Dim("rows", min=1, max=8)
    program = torch.export.export(
        torch.nn.Linear(3, 3).eval(), (torch.ones(2, 3),), dynamic_shapes={"input": {0: rows}}
    )
    torch.export.save(program, file)
    return file


def _model(repository: Path, name: str, file: str, content: bytes, config: str) -> None:
    folder = repository / name / "1"
    folder.mkdir(parents=True)
    (folder / file).write_bytes(content)
    (folder.parent / "config.pbtxt").write_text(config)


def _start(repository: Path) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", START, str(repository)], capture_output=True, text=True, timeout=300
    )


@pytest.mark.parametrize("start", range(STARTS))
def test_eight_exported_programs_load_at_the_same_time(exported, tmp_path, start):
    for i in range(EIGHT):
        _model(tmp_path, f"m{i}", "model.pt2", exported.read_bytes(), 'backend: "pytorch"')

    done = _start(tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("'READY'") == EIGHT, done.stdout


@pytest.mark.parametrize("start", range(STARTS))
def test_an_exported_program_and_a_compiled_module_load_at_the_same_time(exported, tmp_path, start):
    _model(tmp_path, "exported", "model.pt2", exported.read_bytes(), 'backend: "pytorch"')
    for i in range(2):
        _model(tmp_path, f"compiled{i}", "model.py", MODULE.encode(), COMPILED)

    done = _start(tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("'READY'") == 3, done.stdout
