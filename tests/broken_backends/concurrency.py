"""Instances and requests that get into each other's way."""

import pytest

import core
from broken_backends.contract import Contract, LivesForTwoExecutions, Well, caught_by
from core.pipeline import Chain


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
            """Waits for nobody."""

        monkeypatch.setattr(Chain, "drain", drain)
