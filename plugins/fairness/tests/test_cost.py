"""Tokens as the cost of a request: estimated by its size, corrected by what the model reports."""

import asyncio

import numpy as np
import pytest
from core_fairness.cost import Rows, Tokens, counts_tokens

import core
from core import config as configuration
from core.costs import _watchers, report_cost
from core.request import InferenceRequest
from core.tensor import Tensor

from .conftest import IO

ALICE, BOB = 1, 2
REPORTS = IO.replace(
    "output [", 'output [ { name: "num_output_tokens" data_type: TYPE_UINT32 dims: [ 1 ] },', 1
)


def request(**inputs):
    tensors = {}
    for name, value in inputs.items():
        array = np.array([value], object if isinstance(value, bytes) else np.int64)
        tensors[name] = Tensor.of(name, array)
    return InferenceRequest("m", tensors)


class Writes(core.ModelInstance):
    """Takes 1 ms for each of the tokens that the first value of x says; reports them as it is told to."""

    reports = "output"

    async def execute(self, batch):
        asked = batch.requests[0]
        tokens = int(asked.inputs["x"].array.flat[0])
        if self.reports == "cost":
            report_cost(asked, Spent(7, tokens))
        await asyncio.sleep(0.001 * tokens)
        return {"y": batch["x"], "num_output_tokens": np.array([tokens], np.uint32)}


class Spent:
    def __init__(self, prompt, generated):
        self.counts = (prompt, generated)

    def token_counts(self):
        return self.counts


class ReportsCost(Writes):
    reports = "cost"


def test_a_model_that_reports_tokens_is_charged_by_them_unless_the_settings_say_rows(virtual):
    async def test(serve):
        assert (await serve(REPORTS, instance=Writes)).queue.cost.unit == "tokens"
        assert (await serve(IO)).queue.cost.unit == "rows"
        rows = {"models": {"m": {"unit": "rows"}}}
        assert (await serve(REPORTS, rows, instance=Writes)).queue.cost.unit == "rows"

    virtual(test)


@pytest.mark.parametrize("instance", [Writes, ReportsCost], ids=["by output", "by cost"])
def test_callers_with_long_and_short_answers_get_as_many_tokens(virtual, instance):
    async def test(serve):
        served = await serve(REPORTS, instance=instance)
        watched = len(_watchers)
        long, short = await asyncio.gather(
            served.flood(ALICE, 20, 120, value=200), served.flood(BOB, 20, 120, value=20)
        )

        extra = 7 if instance is ReportsCost else 0
        assert long * (200 + extra) == pytest.approx(short * (20 + extra), rel=0.1)
        assert len(_watchers) == watched

    virtual(test)


def test_an_estimate_is_the_prompt_and_the_mean_answer():
    cost = Tokens()

    assert cost.estimate(request(text_input=b"x" * 400)) == pytest.approx(100 + 128, abs=2)
    assert cost.estimate(request(text_input=b"", max_tokens=16)) == pytest.approx(16, abs=2)
    assert cost.estimate(request(text_input=b"", max_tokens=100_000)) == pytest.approx(128, abs=2)
    assert cost.estimate(request()) == 128


def test_a_request_that_fails_costs_one_token():
    cost = Tokens()
    usage = cost.begin(request(text_input=b"x" * 400))

    assert cost.end(usage, 228.0) == 1.0


def test_the_number_of_tokens_in_a_parameter_counts_too():
    asked = request(text_input=b"")
    asked.parameters = {"max_tokens": 5}

    assert Tokens().estimate(asked) == pytest.approx(5, abs=2)
    asked.parameters = {"max_tokens": "many"}
    assert Tokens().estimate(asked) == pytest.approx(128, abs=2)


def test_rows_are_known_before():
    asked = request()
    asked.rows = 7

    assert Rows().estimate(asked) == 7
    assert Rows().end(None, 7) == 7


def test_which_models_report_tokens():
    def signature(text):
        message = configuration.parse_text(f'name: "m" backend: "test" {text}', "test")
        configuration.normalise(message, {}, [])
        return configuration.signature_of(message, None, 1)

    assert counts_tokens(signature(REPORTS)) and not counts_tokens(signature(IO))
