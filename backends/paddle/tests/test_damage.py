"""Damaged files end no process, and many loads need no more memory. 1,000 of them take half a minute."""

import random
import signal
import subprocess
import sys

import numpy as np
import pytest
from backend_paddle.conformance import save
from backend_paddle.framework import paddle
from core_testing.leftovers import growth_by_loads

from core.errors import CoreError

X = np.ones((2, 3), np.float32)


def network(paddle_2):
    def made(x):
        return paddle.static.nn.fc(x, 64, activation="relu")

    return lambda folder: save(folder, made, "model", paddle_2=paddle_2, x=("float32", (None, 3)))


@pytest.mark.parametrize("paddle_2", [False, True])
def test_truncated_files_fail_the_load(serve, tmp_path, paddle_2):
    model = serve(network(paddle_2))
    chance, folder = random.Random(1), tmp_path / "models" / "m" / "1"
    for name in ("model.pdmodel" if paddle_2 else "model.json", "model.pdiparams"):
        good = (folder / name).read_bytes()
        for _ in range(20):
            (folder / name).write_bytes(good[: chance.randrange(len(good))])
            with pytest.raises(CoreError, match=name):
                model.served.load("m")
        (folder / name).write_bytes(good)
    model.served.load("m")


@pytest.mark.parametrize("paddle_2", [False, True])
def test_changed_bytes_end_no_process(serve, tmp_path, paddle_2):
    """A load fails, or the model answers; it may answer something else."""
    model = serve(network(paddle_2))
    chance, folder = random.Random(2), tmp_path / "models" / "m" / "1"
    for name in ("model.pdmodel" if paddle_2 else "model.json", "model.pdiparams"):
        good = (folder / name).read_bytes()
        for _ in range(40):
            content = bytearray(good)
            content[chance.randrange(len(content))] = chance.randrange(256)
            (folder / name).write_bytes(content)
            try:
                model.served.load("m")
                model(x=X)
            except CoreError:
                pass
        (folder / name).write_bytes(good)


@pytest.mark.parametrize("paddle_2", [False, True])
def test_memory_is_flat_over_a_thousand_loads(serve, paddle_2):
    model = serve(network(paddle_2))

    # 500 of each format
    assert growth_by_loads(model.served, "m", lambda: model(x=X), 500) < 8 << 20


def test_models_that_load_at_once(serve, tmp_path):
    model = serve(network(False))
    for i in range(4):
        other = tmp_path / "models" / f"n{i}" / "1"
        other.mkdir(parents=True)
        network(i % 2 == 1)(other)
        (other.parent / "config.pbtxt").write_text('backend: "paddle"')

    model.served.load_together([f"n{i}" for i in range(4)])


def test_paddle_does_not_write_the_log_of_the_server():
    code = "import logging, backend_paddle.framework; print(logging.root.handlers)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"


TERMINATED = """
import os, signal, sys
signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(7))
import backend_paddle.framework
os.kill(os.getpid(), signal.SIGTERM)
"""


def test_paddle_does_not_take_sigterm():
    done = subprocess.run(
        [sys.executable, "-c", TERMINATED], capture_output=True, text=True, check=False
    )

    assert done.returncode == 7, (done.returncode, signal.SIGTERM, done.stderr)
