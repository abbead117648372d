"""Calls in another order, and leaks."""

import itertools
import os
import threading
import time
from pathlib import Path

import pytest
from core_testing import served, server_thread

from broken_backends.contract import Contract, Well, X, caught_by


@caught_by(
    "test_calls_come_from_backend_to_instance_and_back",
    says="these calls were seen: Backend.open, Model.load, ModelInstance.open, ModelInstance.execute",
)
class TestExecutesWhileItOpens(Contract):
    class instance(Well):
        def open(self):
            self.execute({"x": X})


@caught_by(
    "test_every_instance_is_opened_and_closed",
    says="Model.load was called 4 times for a model with three instances, not 1",
)
class TestLoadsForEachInstance(Contract):
    class instance(Well):
        def open(self):
            self.model.load()


@caught_by(
    "test_an_instance_may_be_closed_twice",
    says="the second close of an instance raised IndexError('pop from empty list')",
)
class TestCannotBeClosedTwice(Contract):
    class instance(Well):
        def open(self):
            self.resource = [1]

        def close(self):
            self.resource.pop()


@caught_by("test_an_unload_in_one_server_does_not_affect_another_server")
class TestClosesWhatOthersUse(Contract):
    closed = []

    class instance(Well):
        def close(self):
            TestClosesWhatOthersUse.closed.append(self)

        def execute(self, batch):
            if TestClosesWhatOthersUse.closed:
                raise ValueError("closed")
            return super().execute(batch)


@caught_by(
    "test_no_thread_or_process_stays_after_the_unload",
    says="threads stay after the unload: 'left'",
)
@pytest.mark.usefixtures("impatient")
class TestLeavesAThread(Contract):
    class instance(Well):
        def open(self):
            threading.Thread(target=time.sleep, args=(20,), name="left", daemon=True).start()


class Leaves:
    """A global that keeps an object of every load."""

    left = []


@caught_by(
    "test_nothing_stays_after_many_loads",
    says="each load leaves ",
)
class TestLeavesMemory(Contract):
    class instance(Well):
        def open(self):
            Leaves.left.append(bytes(1 << 20) + b"1")  # the write makes the pages resident


@caught_by(
    "test_nothing_holds_a_model_or_instance_after_the_unload",
    says="something still holds Model, instance after the unload",
)
@pytest.mark.usefixtures("impatient")
class TestIsHeldForever(Contract):
    class instance(Well):
        def open(self):
            Leaves.left.append(self)


# Further mistakes of tests that have one in MISTAKES; test_kit.py lists them in EXTRA.
@pytest.mark.usefixtures("impatient")
class TestLeavesAFile(Contract):
    class instance(Well):
        def open(self):
            Leaves.left.append(open(__file__))  # noqa: SIM115 - the mistake of this backend


@pytest.mark.usefixtures("impatient")
class TestLeavesSharedMemory(Contract):
    numbers = itertools.count()

    class instance(Well):
        def open(self):
            name = f"left-by-the-test-{os.getpid()}-{next(TestLeavesSharedMemory.numbers)}"
            (Path("/dev/shm") / name).write_bytes(b"left")

    @pytest.fixture(autouse=True)
    def _removed(self):
        yield
        for each in Path("/dev/shm").glob(f"left-by-the-test-{os.getpid()}-*"):
            each.unlink()


class TestHangs(Contract):
    """Its execution never returns. The process of the tests must end nevertheless."""

    class instance(Well):
        gate = threading.Event()

        def execute(self, batch):
            self.gate.wait()
            return super().execute(batch)

    @pytest.fixture(autouse=True)
    def _most_impatient(self, monkeypatch):
        for module in (served, server_thread):
            monkeypatch.setattr(module, "PATIENCE_S", 1.0)
