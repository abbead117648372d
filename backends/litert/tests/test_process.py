"""With EXECUTION_MODE process, a crash of LiteRT ends the process of its model, and nothing else."""

import os
import random
import signal
import time

import numpy as np
import pytest
from core_testing import leftovers
from core_testing.patience import PATIENCE_S

import core
from core.errors import CoreError

pytest.importorskip("backend_python", reason="processes of models need backend-python")

# Complete, so that no second process reads the file.
CONFIG = """
backend: "litert" max_batch_size: 4
input [ { name: "x" data_type: TYPE_FP32 dims: [ 3 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 3 ] } ]
"""
APART = 'parameters { key: "EXECUTION_MODE" value { string_value: "process" } }'
X = np.ones((2, 3), np.float32)
CHANGES = 3  # each starts a process


@pytest.fixture
def repository(tmp_path, doubled):
    """A folder with the models apart, in a process, and good: y = x + x."""
    for name, more in (("apart", APART), ("good", "")):
        (tmp_path / name / "1").mkdir(parents=True)
        (tmp_path / name / "config.pbtxt").write_text(CONFIG + more)
        (tmp_path / name / "1" / "model.tflite").write_bytes(doubled().bytes())
    return tmp_path


@pytest.fixture
def server(repository):
    with core.Server(
        model_repository=str(repository),
        model_control_mode="explicit",
        load_model=["good"],
        disable_auto_complete_config=True,
    ) as running:
        yield running


def doubles(server, name):
    """Return whether a model answers y = x + x. Raises CoreError if it answers with an error."""
    return server.infer(name, {"x": X})["y"].tolist() == (2 * X).tolist()


def processes():
    """Return the process ids of the children of children, in which instances run."""
    return {pid for child in leftovers.children() for pid in leftovers.children(child)}


def test_a_process_that_crashes_is_replaced(server):
    others = processes()
    server.load("apart")
    (first,) = processes() - others

    os.kill(first, signal.SIGSEGV)

    assert doubles(server, "good")
    end = time.monotonic() + PATIENCE_S
    while not works_again(server):
        assert time.monotonic() < end
        time.sleep(0.02)
    assert first not in processes()


def works_again(server):
    try:
        return doubles(server, "apart")
    except CoreError as error:
        assert "not healthy" in error.message or "not ready" in error.message
        return False


def test_changed_bytes_of_a_file_never_end_the_server(server, repository):
    others = processes()
    file = repository / "apart" / "1" / "model.tflite"
    whole = file.read_bytes()
    for seed in range(CHANGES):
        chance = random.Random(seed)
        damaged = bytearray(whole)
        damaged[chance.randrange(8, len(damaged))] ^= chance.randrange(1, 256)
        file.write_bytes(damaged)

        try:
            server.load("apart")
            assert processes() - others, seed
            server.infer("apart", {"x": X})
        except CoreError as error:
            assert "'apart" in error.message, seed

        assert doubles(server, "good"), seed
    file.write_bytes(whole)
    server.load("apart")
    assert doubles(server, "apart")
