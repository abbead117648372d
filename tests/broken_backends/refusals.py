"""Models that accept invalid requests."""

import pytest

from broken_backends.contract import Contract, X, caught_by, config


@caught_by(
    "test_a_missing_input_never_reaches_execute",
    says="not refused, execute failed on it: the configuration of the example allows it, x: FP32[3] opt",
)
class TestHasAnOptionalInput(Contract):
    text = config((("x", "TYPE_FP32", "3", "optional: true"),))


@caught_by(
    "test_an_unknown_input_never_reaches_execute",
    says="the request was answered: the configuration of the example allows it, x: FP32[3], no_such_input",
)
class TestHasAnotherInput(Contract):
    text = config((("x", "TYPE_FP32", "3"), ("no_such_input", "TYPE_FP32", "3", "optional: true")))


@caught_by(
    "test_a_wrong_datatype_never_reaches_execute",
    says="x: UINT32[3]",
)
class TestTakesAnotherDatatype(Contract):
    text = config((("x", "TYPE_UINT32", "3"),))


@caught_by(
    "test_a_shape_of_another_rank_never_reaches_execute",
    says="x: FP32[3, 1]",
)
class TestTakesAnotherRank(Contract):
    text = config((("x", "TYPE_FP32", "3, 1"),))


class Rowless(Contract):
    """Declares batching, but its configuration has none."""

    @pytest.fixture
    def served(self, serve, example):
        self.supports = {"cpu"}
        return serve(example)


@caught_by(
    "test_too_many_rows_never_reach_execute",
    says="max_batch_size 0",
)
class TestTakesAnyRows(Rowless):
    text = config((("x", "TYPE_FP32", "-1, 3"),), (("y", "TYPE_FP32", "-1, 3"),), rows=0)

    def needs(self, *capabilities):
        """All of them."""


@caught_by("test_inputs_of_different_rows_never_reach_execute")
class TestTakesDifferentRows(TestTakesAnyRows):
    text = config(
        (("a", "TYPE_FP32", "-1, 3"), ("b", "TYPE_FP32", "-1, 3")),
        (("y", "TYPE_FP32", "-1, 3"),),
        rows=0,
    )
    inputs = {"a": X, "b": X}


@caught_by(
    "test_an_unknown_output_never_reaches_execute",
    says="the example has x: FP32[3], y: FP32[3], no_such_output: FP32[3]",
)
class TestHasAnotherOutput(Contract):
    text = config(outputs=(("y", "TYPE_FP32", "3"), ("no_such_output", "TYPE_FP32", "3")))
