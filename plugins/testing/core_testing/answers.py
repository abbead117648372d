"""Answers are right, and later requests do not change them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from core import dtypes
from core.request import InferenceRequest
from core.tensor import Tensor
from core_testing.example import MODEL, Example
from core_testing.kit import Kit, Serve
from core_testing.served import Served


class Answers(Kit):
    def test_a_request_gets_its_answer(self, served: Served, example: Example) -> None:
        example.check(served.answer(example.inputs))

    def test_the_same_request_again_gets_the_same_answer(
        self, served: Served, example: Example
    ) -> None:
        first = served.ask(example.inputs)

        for _ in range(3):
            again = served.answer(example.inputs)
            example.check(again, first)

    def test_an_answer_does_not_change_under_later_requests(
        self, served: Served, example: Example
    ) -> None:
        kept = served.ask(example.inputs)
        others = {name: array[::-1].copy() for name, array in example.inputs.items() if array.ndim}

        example.check(kept)
        for _ in range(3):
            served.together([{**example.inputs, **others}])

        example.check(kept)

    def test_the_order_of_the_inputs_does_not_matter(
        self, served: Served, example: Example
    ) -> None:
        backwards = dict(reversed(list(example.inputs.items())))

        example.check(served.answer(backwards))

    def test_only_the_wanted_output_comes_back(self, served: Served, example: Example) -> None:
        for name, expected in example.answer.items():
            found = served.together([example.inputs], outputs=[name])[0]

            example.check(found, {name: expected})

    def test_input_bytes_may_lie_at_an_odd_address(self, served: Served, example: Example) -> None:
        """Tensors are views into a message, so they may be unaligned."""
        tensors = {name: _at_odd_address(name, array) for name, array in example.inputs.items()}

        example.check(served.send([InferenceRequest(MODEL, tensors)])[0])

    def test_the_bytes_of_a_request_are_not_written_to(
        self, served: Served, example: Example
    ) -> None:
        tensors = {}
        for name, array in example.inputs.items():
            made = Tensor.of(name, array)
            tensors[name] = Tensor(name, made.dtype, made.shape, raw=bytearray(made.raw))
        before = {name: bytes(tensor.raw) for name, tensor in tensors.items()}

        served.send([InferenceRequest(MODEL, tensors)])

        assert {name: bytes(tensor.raw) for name, tensor in tensors.items()} == before

    def test_the_configuration_describes_inputs_and_outputs(
        self, served: Served, example: Example
    ) -> None:
        config = served.config()

        described: list[Any] = [*config.input, *config.output]
        found = {io.name: io.data_type for io in described}

        arrays = {**example.inputs, **example.answer}
        assert set(found) >= set(arrays)
        for name, array in arrays.items():
            expected = dtypes.of_numpy(array.dtype)
            if expected is not dtypes.UINT16:  # may stand for BF16, which numpy lacks
                assert dtypes.BY_NUMBER[found[name]] is expected, name

    def test_text_comes_back_unchanged(self, serve: Serve, request: pytest.FixtureRequest) -> None:
        self.needs("strings")
        example: Example = request.getfixturevalue("strings_example")

        example.check(serve(example).answer(example.inputs))

    def test_every_shape_gets_its_answer(
        self, serve: Serve, request: pytest.FixtureRequest
    ) -> None:
        self.needs("dynamic_shape")
        examples: list[Example] = request.getfixturevalue("other_shapes")
        served = serve(examples[0])

        for example in (*examples, *reversed(examples)):
            example.check(served.answer(example.inputs))


def _at_odd_address(name: str, array: np.ndarray) -> Tensor:
    made = Tensor.of(name, array)
    raw = memoryview(b"?" + bytes(made.raw))[1:]
    return Tensor(name, made.dtype, made.shape, raw=raw)
