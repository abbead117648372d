"""Streams of several answers to one request come in order and end."""

from __future__ import annotations

import pytest

from core_testing.example import Arrays, Example
from core_testing.kit import Kit, Serve


class Streams(Kit):
    def test_a_stream_gives_its_answers_in_order_and_ends(
        self, serve: Serve, request: pytest.FixtureRequest
    ) -> None:
        example = self._streaming(request)

        _check(example, serve(example).stream(example.inputs))

    def test_two_streams_do_not_mix(self, serve: Serve, request: pytest.FixtureRequest) -> None:
        example = self._streaming(request)

        for answers in serve(example).streams([example.inputs] * 2):
            _check(example, answers)

    def test_a_cancelled_stream_ends_and_the_next_one_is_whole(
        self, serve: Serve, request: pytest.FixtureRequest
    ) -> None:
        example = self._streaming(request)
        served = serve(example)

        served.after_cancelling(example.inputs)  # returns when the stream has ended

        _check(example, served.stream(example.inputs))

    def _streaming(self, request: pytest.FixtureRequest) -> Example:
        self.needs("streaming")
        example: Example = request.getfixturevalue("stream_example")
        return example


def _check(example: Example, answers: list[Arrays]) -> None:
    assert isinstance(example.expected, list), "expected of a stream is the list of its answers"
    assert len(answers) == len(example.expected), (
        f"the stream has {len(answers)} answers, {len(example.expected)} were expected"
    )
    for found, expected in zip(answers, example.expected, strict=True):
        example.check(found, expected)
