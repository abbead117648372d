"""Instances run at the same time; loads and unloads happen under traffic."""

from __future__ import annotations

from typing import Any

from core.errors import CoreError
from core.testing.diary import CLOSE, EXECUTE, Diary
from core.testing.example import MODEL, Example
from core.testing.kit import Kit, Serve
from core.testing.served import Served, request_of

MANY = 1000  # requests in flight


class Concurrency(Kit):
    def test_two_instances_answer_at_the_same_time(self, serve: Serve, example: Example) -> None:
        self.needs("cpu")
        served = serve(example, instances=2)

        for answer in served.together([example.inputs] * 40):
            example.check(answer)

    def test_two_models_of_one_backend_answer_at_the_same_time(
        self, serve: Serve, example: Example
    ) -> None:
        first, second = serve(example), serve(example)

        for _ in range(5):
            for served in (first, second):
                for answer in served.together([example.inputs] * 4):
                    example.check(answer)

    def test_a_thousand_requests_in_flight_are_all_answered(
        self, served: Served, example: Example
    ) -> None:
        rows = example
        if "batching" in self.supports:
            rows = example.rows_of(slice(0, 1))

        for answer in served.together([rows.inputs] * MANY):
            rows.check(answer)

    def test_cancelled_requests_end_and_the_others_are_answered(
        self, served: Served, example: Example
    ) -> None:
        for answer in served.while_asking([example.inputs] * 20, _cancel_ten(example)):
            example.check(answer)

        example.check(served.answer(example.inputs))

    def test_an_unload_waits_for_the_last_answer(
        self, diary: Diary, serve: Serve, example: Example
    ) -> None:
        served = serve(example)

        answers = served.while_asking([example.inputs] * 10, _unload)

        for answer in answers:
            example.check(answer)
        served.unload()
        executions = [i for i, event in enumerate(diary.events) if event == EXECUTE]
        assert diary.events.index(CLOSE) > max(executions, default=-1)


def _unload(server: Any) -> Any:
    return server.unload(MODEL)


def _cancel_ten(example: Example) -> Any:
    async def act(server: Any) -> None:
        replies = [server.infer(request_of(example.inputs)) for _ in range(10)]
        for reply in replies:
            reply.cancel()
        for reply in replies:  # each ends, with its answer or without
            try:
                await reply
            except CoreError:
                pass

    return act
