"""Rows of several requests share an execution and do not mix."""

from __future__ import annotations

import numpy as np
import pytest

from core.errors import CoreError
from core.testing.example import Arrays, Example
from core.testing.kit import Kit, Serve
from core.testing.served import Served


class Batches(Kit):
    def test_rows_of_several_requests_do_not_mix(self, served: Served, example: Example) -> None:
        self.needs("batching")
        rows = [example.row(i, i + 1) for i in reversed(range(example.rows))]

        answers = served.together([inputs for inputs, _ in rows])

        for answer, (_, expected) in zip(answers, rows, strict=True):
            example.check(_answer(answer), expected)

    def test_requests_that_arrive_together_share_one_execution(
        self, served: Served, example: Example
    ) -> None:
        self.needs("batching")
        fit = min(example.rows, served.config().max_batch_size)
        before = served.executions()

        served.together([example.row(i, i + 1)[0] for i in range(fit)])

        assert served.executions() - before == 1

    def test_requests_of_different_sizes_share_a_batch(
        self, served: Served, example: Example
    ) -> None:
        self.needs("batching")
        parts = [example.row(0, 1), example.row(1, example.rows)]

        answers = served.together([inputs for inputs, _ in parts])

        for answer, (_, expected) in zip(answers, parts, strict=True):
            example.check(_answer(answer), expected)

    def test_one_row_alone_gets_the_answer_that_it_gets_among_others(
        self, served: Served, example: Example
    ) -> None:
        self.needs("batching")

        for i in range(example.rows):
            inputs, expected = example.row(i, i + 1)
            example.check(served.ask(inputs), expected)

    def test_the_largest_batch_is_answered(self, served: Served, example: Example) -> None:
        self.needs("batching")
        order = np.arange(served.config().max_batch_size) % example.rows

        found = served.ask({name: array[order] for name, array in example.inputs.items()})

        expected = {name: np.asarray(array)[order] for name, array in example.answer.items()}
        example.check(found, expected)

    def test_more_requests_than_fit_are_all_answered(
        self, served: Served, example: Example
    ) -> None:
        self.needs("batching")
        count = 3 * served.config().max_batch_size + 1
        rows = [example.row(i % example.rows, i % example.rows + 1) for i in range(count)]

        answers = served.together([inputs for inputs, _ in rows])

        for answer, (_, expected) in zip(answers, rows, strict=True):
            example.check(_answer(answer), expected)

    def test_a_request_of_no_rows_gets_no_rows(self, served: Served, example: Example) -> None:
        self.needs("batching", "empty_batch")
        inputs, expected = example.row(0, 0)

        example.check(served.ask(inputs), expected)

    def test_requests_of_several_shapes_arrive_together(
        self, serve: Serve, request: pytest.FixtureRequest
    ) -> None:
        self.needs("dynamic_shape")
        examples: list[Example] = request.getfixturevalue("other_shapes")
        served = serve(examples[0])

        answers = served.together([example.inputs for example in examples])

        for answer, example in zip(answers, examples, strict=True):
            example.check(_answer(answer))


def _answer(found: Arrays | CoreError) -> Arrays:
    assert not isinstance(found, CoreError), found
    return found
