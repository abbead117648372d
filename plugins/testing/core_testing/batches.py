"""Rows of several requests share an execution, and each request gets its own rows."""

from __future__ import annotations

import numpy as np
import pytest

from core_testing.example import Example
from core_testing.kit import Kit, Serve
from core_testing.served import Served


class Batches(Kit):
    def test_rows_of_several_requests_do_not_mix(self, served: Served, example: Example) -> None:
        self.needs("batching")

        _together(served, list(reversed(_single_rows(example))))

    def test_requests_that_arrive_together_share_one_execution(
        self, served: Served, example: Example
    ) -> None:
        self.needs("batching")
        fit = min(example.rows, served.config().max_batch_size)
        before = served.executions()

        served.together([each.inputs for each in _single_rows(example)[:fit]])

        assert served.executions() - before == 1

    def test_requests_of_different_sizes_share_a_batch(
        self, served: Served, example: Example
    ) -> None:
        self.needs("batching")

        _together(served, [example.rows_of(slice(0, 1)), example.rows_of(slice(1, example.rows))])

    def test_one_row_alone_gets_the_same_answer_as_in_a_batch(
        self, served: Served, example: Example
    ) -> None:
        self.needs("batching")

        for each in _single_rows(example):
            each.check(served.answer(each.inputs))

    def test_the_largest_batch_is_answered(self, served: Served, example: Example) -> None:
        self.needs("batching")
        full = example.rows_of(np.arange(served.config().max_batch_size) % example.rows)

        full.check(served.answer(full.inputs))

    def test_more_requests_than_fit_are_all_answered(
        self, served: Served, example: Example
    ) -> None:
        self.needs("batching")
        count = 3 * served.config().max_batch_size + 1
        rows = _single_rows(example)

        _together(served, [rows[i % len(rows)] for i in range(count)])

    def test_requests_of_several_shapes_arrive_together(
        self, serve: Serve, request: pytest.FixtureRequest
    ) -> None:
        self.needs("dynamic_shape")
        examples: list[Example] = request.getfixturevalue("other_shapes")

        _together(serve(examples[0]), examples)


def _single_rows(example: Example) -> list[Example]:
    return [example.rows_of(slice(i, i + 1)) for i in range(example.rows)]


def _together(served: Served, examples: list[Example]) -> None:
    """Send the inputs of all examples at the same moment, and check the answer to each."""
    answers = served.together([each.inputs for each in examples])
    for each, answer in zip(examples, answers, strict=True):
        each.check(answer)
