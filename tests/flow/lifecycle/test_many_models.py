"""Hundreds of models: the work for one of them does not grow with the number of the others.

These tests do not measure time: they count lines that run on the loop, and listed folders.
"""

import asyncio
import os
import sys
from contextlib import contextmanager

import pytest

from core.options import Options
from core.server import InferenceServer
from frontends.metrics.text import render

pytest.importorskip("backend_testing")

FEW, MANY = 50, 200
ASYNCIO = os.path.dirname(asyncio.__file__)
CONFIG = """
backend: "identity"
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
instance_group [ { kind: KIND_CPU count: 1 } ]
"""
# Of a look through all models, as an unload has it for what may be forgotten.
LINES_OF_A_LOOK = 10


class Lines:
    count = 0


@contextmanager
def counted():
    """Counts the lines that run on this thread, each turn of a loop again.

    Those of asyncio do not count: how many turns its loop takes is a matter of time.
    """
    lines = Lines()

    def trace(frame, event, argument):
        if frame.f_code.co_filename.startswith(ASYNCIO):
            return None
        if event == "line":
            lines.count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield lines
    finally:
        sys.settrace(before)


def write(folder, names):
    for name in names:
        (folder / name / "1").mkdir(parents=True)
        (folder / name / "config.pbtxt").write_text(CONFIG)


def names(count):
    return [f"model_{number:03}" for number in range(count)]


async def lines_of(count, folder):
    """Return the number of lines that a server with so many models runs for each of some tasks."""
    write(folder, names(count))
    found = {}
    server = InferenceServer(Options.defaults(model_repository=[str(folder)], load_model=["*"],
                                     model_control_mode="explicit"))  # fmt: skip
    with counted() as lines:
        await server.start()
    found["start"] = lines.count / count
    assert len(server.manager.index(ready_only=True)) == count
    with counted() as lines:
        server.manager.index()
    found["index"] = lines.count / count
    with counted() as lines:
        render(server.control.health.metrics_here())
    found["metrics"] = lines.count / count
    found["unload one"] = found["load one"] = sys.maxsize
    for _ in range(
        3
    ):  # the least counts: on a busy machine, other work of the loop falls into the waits
        with counted() as lines:
            await server.manager.unload("model_007", False)
        found["unload one"] = min(found["unload one"], lines.count)
        with counted() as lines:
            await server.manager.load("model_007", {})
        found["load one"] = min(found["load one"], lines.count)
    assert await server.stop(30) == 0  # looks again and again, so its lines are a matter of time
    return found


async def test_a_model_costs_the_same_among_few_and_among_many(tmp_path):
    await lines_of(10, tmp_path / "first")  # whatever runs once has run
    few = await lines_of(FEW, tmp_path / "few")
    many = await lines_of(MANY, tmp_path / "many")

    for task in ("start", "index", "metrics"):
        assert many[task] < 1.3 * few[task], (task, few, many)
    for task in ("unload one", "load one"):
        more = (many[task] - few[task]) / (MANY - FEW)
        assert more < LINES_OF_A_LOOK, (task, few, many)


async def test_a_poll_without_changes_lists_each_folder_once_and_reads_no_file(
    tmp_path, monkeypatch
):
    write(tmp_path, names(MANY))
    server = InferenceServer(Options.defaults(model_repository=[str(tmp_path)], model_control_mode="poll",
                                     repository_poll_secs=3600))  # fmt: skip
    await server.start()
    seen = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: seen.append(str(path)) or scandir(path))
    monkeypatch.setattr("pathlib.Path.read_text", lambda *_: pytest.fail("a file was read"))

    await server.manager.poll()

    # The repository, once or twice; of each model its folder and that of version 1.
    assert len(seen) <= 2 + 2 * MANY
    monkeypatch.undo()
    assert await server.stop(30) == 0
