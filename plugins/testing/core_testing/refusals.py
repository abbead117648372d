"""Core refuses requests that do not fit the model's configuration; they do not reach the backend."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from core import dtypes
from core.errors import CoreError, Kind
from core_testing.example import Arrays, Example
from core_testing.kit import Kit
from core_testing.served import Served


class Refusals(Kit):
    def test_a_missing_input_never_reaches_execute(self, served: Served, example: Example) -> None:
        first = next(iter(example.inputs))
        inputs = {name: array for name, array in example.inputs.items() if name != first}

        _refused(served, inputs, first)

    def test_an_unknown_input_never_reaches_execute(self, served: Served, example: Example) -> None:
        extra = np.ones_like(next(iter(example.inputs.values())))

        _refused(served, {**example.inputs, "no_such_input": extra}, "")

    def test_a_wrong_datatype_never_reaches_execute(self, served: Served, example: Example) -> None:
        name, array = next(iter(example.inputs.items()))
        other = np.zeros(array.shape, np.uint32 if array.dtype != np.uint32 else np.int8)

        _refused(served, {**example.inputs, name: other}, name)

    def test_a_shape_of_another_rank_never_reaches_execute(
        self, served: Served, example: Example
    ) -> None:
        name, array = next(iter(example.inputs.items()))

        _refused(served, {**example.inputs, name: array[..., np.newaxis]}, name)

    def test_too_many_rows_never_reach_execute(self, served: Served, example: Example) -> None:
        self.needs("batching")
        order = np.zeros(served.config().max_batch_size + 1, int)
        inputs = {name: array[order] for name, array in example.inputs.items()}

        _refused(served, inputs, "batch-size")

    def test_inputs_of_different_rows_never_reach_execute(
        self, served: Served, example: Example
    ) -> None:
        self.needs("batching")
        if len(example.inputs) == 1:
            pytest.skip("the example has one input only")
        name, array = next(iter(example.inputs.items()))

        _refused(served, {**example.inputs, name: array[:1]}, "batch size")

    def test_an_unknown_output_never_reaches_execute(
        self, served: Served, example: Example
    ) -> None:
        answer = served.together([example.inputs], outputs=["no_such_output"])[0]

        assert isinstance(answer, CoreError), (
            f"the request was answered: the configuration of the example has {_described(served)}"
        )
        assert "no_such_output" in answer.message
        assert served.executions() == 0


def _described(served: Served) -> str:
    """Return the tensors of the configuration and max_batch_size in one line."""
    config = served.config()
    tensors: list[Any] = [*config.input, *config.output]
    return ", ".join(
        f"{io.name}: {dtypes.BY_NUMBER[io.data_type].name}{list(io.dims)}"
        + (" optional" if getattr(io, "optional", False) else "")
        for io in tensors
    ) + (f", max_batch_size {config.max_batch_size}")


def _refused(served: Served, inputs: Arrays, text: str) -> None:
    answer = served.together([inputs])[0]

    assert isinstance(answer, CoreError), (
        f"the request was answered: the configuration of the example allows it, {_described(served)}"
    )
    assert answer.kind is Kind.INVALID, (
        f"the request was not refused, execute failed on it: the configuration of the example allows it, "
        f"{_described(served)} ({answer.message})"
    )
    assert text in answer.message, f"the refusal does not name '{text}': {answer.message}"
    assert served.executions() == 0
