"""Failures that affect other requests, or leave something behind."""

import pytest

import core
from broken_backends.contract import Contract, Well, X, caught_by
from core.lifecycle.backends import BackendPool


@caught_by("test_an_execution_succeeds_after_one_that_raised")
class TestFailsTheFirstTime(Contract):
    class instance(Well):
        def open(self):
            self.warm = False

        def execute(self, batch):
            if not self.warm:
                self.warm = True
                raise ValueError("cold")
            return super().execute(batch)


@caught_by("test_an_input_that_the_model_cannot_answer_fails_alone")
class TestIsPoisoned(Contract):
    class instance(Well):
        poisoned = False

        def execute(self, batch):
            self.poisoned = self.poisoned or bool((batch["x"] < 0).any())
            if self.poisoned:
                raise ValueError("negative")
            return super().execute(batch)

    @pytest.fixture
    def example(self, tmp_path):
        return self.made(tmp_path, failing={"x": -1 - X})


@caught_by(
    "test_a_model_that_cannot_load_gives_the_reason_and_leaves_nothing_open",
    "test_an_instance_that_cannot_open_unloads_the_model",
    says="the last calls were",
)
class TestStaysOpen(Contract):
    @pytest.fixture(autouse=True)
    def _broken_core(self, monkeypatch):
        async def release(self, backend):
            """Close nothing."""

        monkeypatch.setattr(BackendPool, "release", release)


class LoadsOnce(core.Model):
    def load(self):
        if getattr(self.backend, "loaded", False):
            raise ValueError("once is enough")
        self.backend.loaded = True


@caught_by(
    "test_a_model_that_failed_to_load_loads_once_the_cause_is_gone",
    "test_a_model_can_be_loaded_again_after_it_was_unloaded",
)
class TestLoadsOnce(Contract):
    model = LoadsOnce


@caught_by(
    "test_a_version_without_its_files_fails_with_a_reason",
    says="a version without its files (weights) has loaded",
)
class TestNeedsNoFiles(Contract):
    @pytest.fixture
    def example(self, tmp_path):
        (tmp_path / "weights").touch()
        return self.made(tmp_path)


@caught_by("test_a_cancelled_request_does_not_disturb_the_others")
class TestTakesOneRequest(Contract):
    class instance(Well):
        def execute(self, batch):
            if len(batch.requests) > 1:
                raise ValueError("one at a time")
            return super().execute(batch)
