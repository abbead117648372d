"""Requests for llama.cpp: which prompts report their progress."""

import pytest

pytest.importorskip("llguidance", reason="it compiles grammars")

from backend_llamacpp.request import completion_request
from backend_llamacpp.settings import Settings
from core_generate import Prompt, Sampling

BATCH = 8
SETTINGS = Settings(infill=("<before>", "<between>", "<behind>"))


def reports_progress(prompt, **sampling):
    return completion_request(prompt, Sampling(**sampling), SETTINGS, BATCH)["return_progress"]


@pytest.mark.parametrize("prompt", [Prompt("a" * BATCH), Prompt(tokens=[1] * BATCH)])
def test_a_prompt_that_is_computed_at_once_reports_no_progress(prompt):
    assert not reports_progress(prompt)


@pytest.mark.parametrize(
    "prompt",
    [
        Prompt("a" * (BATCH + 1)),
        Prompt("é" * (BATCH - 1)),  # two bytes each, of which each may be a token
        Prompt("a" * BATCH, suffix="b"),
        Prompt(tokens=[1] * (BATCH + 1)),
    ],
)
def test_a_prompt_that_may_need_several_batches_reports_its_progress(prompt):
    assert reports_progress(prompt)


def test_a_prompt_whose_answer_a_stop_string_may_end_reports_its_progress():
    assert reports_progress(Prompt("a"), stop=("b",))
