"""Instances and requests that get into each other's way."""

import os
import sys
import textwrap
import threading

import pytest

import core
from broken_backends.contract import Contract, LivesForTwoExecutions, Well, caught_by
from core import plugins
from core.pipeline import Chain
from core.testing import Example


class Alone(Well):
    """Only one of them may be open."""

    def open(self):
        if self.model.backend.config.setdefault("open", "no") == "yes":
            raise ValueError("there is one already")
        self.model.backend.config["open"] = "yes"


@caught_by("test_two_instances_answer_at_the_same_time")
class TestIsAlone(Contract):
    instance = Alone


@caught_by("test_two_models_of_one_backend_answer_at_the_same_time")
class TestIsOneModel(Contract):
    class model(core.Model):
        def load(self):
            self.backend.users = getattr(self.backend, "users", 0) + 1
            if self.backend.users > 1:
                raise ValueError("there is one already")


@caught_by(
    "test_eight_models_of_one_backend_load_at_the_same_time",
    says="models that load at the same time cannot be loaded; the first: ",
)
class TestKeepsItsReaderInAGlobal(Contract):
    """As torch.export.load does. The first load waits for a second one, so that they do meet."""

    class model(core.Model):
        reading = threading.Lock()
        met = threading.Event()

        def load(self):
            if not self.reading.acquire(blocking=False):
                self.met.set()
                raise ValueError("the reader is in use")
            try:
                self.met.wait(5)
            finally:
                self.reading.release()


@caught_by(
    "test_eight_models_in_processes_of_their_own_load_at_the_same_time",
    says="there is one already",
)
class TestUnpacksToOnePlace(Contract):
    """Of the whole machine. The backend is installed, so that other processes find it."""

    code = """
        import core

        class Unpacked(core.Model):
            def load(self):
                try:
                    open({place!r}, "x").close()
                except FileExistsError:
                    raise ValueError("there is one already")

        class Negate(core.ModelInstance):
            def execute(self, batch):
                return {{"y": -batch["x"]}}

        backend = core.Backend(model=Unpacked, instance=Negate)
    """

    @pytest.fixture
    def example(self, tmp_path, monkeypatch):
        site, files = tmp_path / "site", tmp_path / "files"
        files.mkdir()
        described = site / "unpacks-1.dist-info"
        described.mkdir(parents=True)
        (described / "METADATA").write_text("Metadata-Version: 2.1\nName: unpacks\nVersion: 1\n")
        (described / "entry_points.txt").write_text("[core.backends]\nunpacks = unpacks:backend\n")
        code = textwrap.dedent(self.code).format(place=str(tmp_path / "unpacked"))
        (site / "unpacks.py").write_text(code)
        monkeypatch.syspath_prepend(site)
        path = os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])
        monkeypatch.setenv("PYTHONPATH", path)
        plugins.look_again()
        yield Example(plugins.backend("unpacks"), files, self.inputs, self.expected)
        del sys.modules["unpacks"]
        monkeypatch.undo()
        plugins.look_again()


@caught_by("test_a_thousand_requests_in_flight_are_all_answered")
class TestTiresSlowly(Contract):
    class instance(LivesForTwoExecutions):
        lives = 60


@caught_by("test_cancelled_requests_end_and_the_others_are_answered")
class TestTakesFewRequests(Contract):
    class instance(LivesForTwoExecutions):
        lives = 3


@caught_by(
    "test_an_unload_waits_for_the_last_answer",
    says="nothing came within 3 s",
)
@pytest.mark.usefixtures("impatient")
class TestDoesNotWait(Contract):
    @pytest.fixture(autouse=True)
    def _broken_core(self, monkeypatch):
        async def drain(self):
            """Does not wait for running requests."""

        monkeypatch.setattr(Chain, "drain", drain)
