"""Backends with one mistake each, held against the contract kit by test_kit.py."""

import threading
import time

import numpy as np
import pytest

import core
from core.testing import BackendConformance, Example

X = np.arange(12, dtype=np.float32).reshape(4, 3)


class Contract(BackendConformance):
    supports = {"batching", "cpu", "empty_batch"}
    instance: type[core.ModelInstance]
    model = core.Model

    @pytest.fixture
    def example(self, tmp_path):
        backend = core.Backend(instance=self.instance, model=self.model)
        return Example(backend, tmp_path, inputs={"x": X}, expected={"y": -X})


class Well(core.ModelInstance):
    def execute(self, batch):
        return {"y": -batch["x"]}


class TestWell(Contract):
    instance = Well


class TestWellOnTheLoop(Contract):
    class instance(Well):
        placement = "inline"


class TestWellAsCoroutine(Contract):
    class instance(core.ModelInstance):
        async def execute(self, batch):
            return {"y": -batch["x"]}


class TestMixesRows(Contract):
    class instance(Well):
        def execute(self, batch):
            return {"y": -batch["x"][::-1]}


class TestAnswersFromOneBuffer(Contract):
    class instance(Well):
        def open(self):
            self.buffer = np.empty((8, 3), np.float32)

        def execute(self, batch):
            return {"y": np.negative(batch["x"], out=self.buffer[: batch.rows])}


class TestGivesAnotherDatatype(Contract):
    class instance(Well):
        def execute(self, batch):
            return {"y": -batch["x"].astype(np.float64)}


class TestWritesIntoItsInputs(Contract):
    class instance(Well):
        def execute(self, batch):
            x = batch["x"]
            if x.flags.writeable:
                x *= -1
                return {"y": x}
            return {"y": -x}


class TestLeavesAThread(Contract):
    class instance(Well):
        def open(self):
            threading.Thread(target=time.sleep, args=(20,), name="left", daemon=True).start()


class TestIsHeldForever(Contract):
    kept = []

    class instance(Well):
        def open(self):
            TestIsHeldForever.kept.append(self)


class TestCannotBeClosedTwice(Contract):
    class instance(Well):
        def open(self):
            self.resource = [1]

        def close(self):
            self.resource.pop()


class TestAnswersNothing(Contract):
    class instance(Well):
        def execute(self, batch):
            return None
