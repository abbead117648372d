"""Implicit state: the tensors that the server keeps between the requests of a sequence."""

from __future__ import annotations

import pytest

from core_testing.example import Arrays, Example
from core_testing.kit import Kit, Serve


class State(Kit):
    def test_a_request_of_a_sequence_gets_the_state_of_the_previous_one(
        self, serve: Serve, request: pytest.FixtureRequest
    ) -> None:
        example, answers = self._stateful(request)

        found = serve(example).in_sequence([example.inputs] * len(answers), 7)

        for one, expected in zip(found, answers, strict=True):
            example.check(one, expected)

    def test_a_sequence_that_starts_again_starts_without_state(
        self, serve: Serve, request: pytest.FixtureRequest
    ) -> None:
        example, answers = self._stateful(request)
        served = serve(example)

        for _ in range(2):
            found = served.in_sequence([example.inputs] * len(answers), 7)

            for one, expected in zip(found, answers, strict=True):
                example.check(one, expected)

    def test_sequences_do_not_share_their_state(
        self, serve: Serve, request: pytest.FixtureRequest
    ) -> None:
        example, answers = self._stateful(request)

        found = serve(example).in_sequences([example.inputs] * len(answers), [7, 8, 9])

        for one in found:
            for answer, expected in zip(one, answers, strict=True):
                example.check(answer, expected)

    def _stateful(self, request: pytest.FixtureRequest) -> tuple[Example, list[Arrays]]:
        self.needs("state")
        example: Example = request.getfixturevalue("state_example")
        assert isinstance(example.expected, list), (
            "expected of a sequence is the list of its answers"
        )
        return example, example.expected
