"""Instances run at the same time; loads and unloads happen under traffic."""

from __future__ import annotations

from typing import Any

from core.testing.diary import CLOSE, EXECUTE, Diary
from core.testing.example import MODEL, Example
from core.testing.kit import Kit, Serve


class Concurrency(Kit):
    def test_two_instances_answer_at_the_same_time(self, serve: Serve, example: Example) -> None:
        self.needs("cpu")
        served = serve(example, instances=2)

        for answer in served.together([example.inputs] * 40):
            assert isinstance(answer, dict), answer
            example.check(answer)

    def test_two_models_of_one_backend_answer_at_the_same_time(
        self, serve: Serve, example: Example
    ) -> None:
        first, second = serve(example), serve(example)

        for _ in range(5):
            for served in (first, second):
                for answer in served.together([example.inputs] * 4):
                    assert isinstance(answer, dict), answer
                    example.check(answer)

    def test_an_unload_waits_for_the_last_answer(
        self, diary: Diary, serve: Serve, example: Example
    ) -> None:
        served = serve(example)

        answers = served.while_asking([example.inputs] * 10, _unload)

        for answer in answers:
            assert isinstance(answer, dict), answer
            example.check(answer)
        served.unload()
        assert diary.events.index(CLOSE) > max(
            i for i, event in enumerate(diary.events) if event == EXECUTE
        )


def _unload(server: Any) -> Any:
    return server.unload(MODEL)
