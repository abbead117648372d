"""The proof of `make soak-memory`, shorter: 200 small models on a quarter of their memory."""

import os
import sys

import pytest
from memory_budget.__main__ import main
from memory_budget.disturber import Disturber
from memory_budget.models import write_models
from memory_budget.run import soak


@pytest.mark.timeout(300)
def test_200_models_are_served_on_a_quarter_of_their_memory(tmp_path):
    found = soak(tmp_path, least_mb=0.5, most_mb=2, requests=600, python=0)
    print(found.facts, dict(found.results))

    assert found.problems == []
    assert found.results["answered"] > 500


def test_a_soak_may_take_a_time_instead_of_a_number_of_requests(tmp_path):
    found = soak(tmp_path, 60, least_mb=0.5, most_mb=2, python=0, seconds=1.2)

    # The hit rate of so few requests depends on which of them came first.
    assert [each for each in found.problems if "hit rate" not in each] == []
    assert 10 < found.results["answered"] < 2000


@pytest.mark.parametrize("python", [0, 1, 4, 10])
def test_as_many_models_are_python_models_as_are_asked_for(tmp_path, python):
    write_models(tmp_path, 10, 0.001, 0.002, 1, python)

    assert len(list(tmp_path.glob("*/1/model.py"))) == python


def test_loads_of_an_operator_come_after_the_request_that_began_before_them():
    disturber = Disturber(None, None, 3, False, 1)
    disturber._loads = [(0, "m1"), (0, "m2")]

    found = disturber.merged(["m0", "m0"])

    assert found == [("m0", True), ("m1", False), ("m2", False), ("m0", True)]


def test_loads_apart_from_the_pinned_model_need_two_processors(monkeypatch, capsys):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3})
    monkeypatch.setattr(sys, "argv", ["memory_budget", "--apart"])

    with pytest.raises(SystemExit) as ended:
        main()

    assert ended.value.code == 2
    assert "--apart needs two processors" in capsys.readouterr().err
