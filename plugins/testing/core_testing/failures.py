"""A failure affects only the request or model that fails."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from core.errors import CoreError
from core_testing.call_log import BACKEND_CLOSE, EXECUTE, LOAD, OPEN, UNLOAD, CallLog
from core_testing.example import Example
from core_testing.kit import Kit, Serve
from core_testing.served import Served, request_of


class Failures(Kit):
    def test_an_execution_succeeds_after_one_that_raised(
        self, calls: CallLog, served: Served, example: Example
    ) -> None:
        if calls.is_native():
            pytest.skip("the kit cannot let a native execution fail; give `failing` inputs")
        calls.fail(EXECUTE)

        with pytest.raises(CoreError, match="was told to fail"):
            served.ask(example.inputs)

        example.check(served.answer(example.inputs))

    def test_an_input_that_the_model_cannot_answer_fails_alone(
        self, served: Served, example: Example
    ) -> None:
        if example.failing is None:
            pytest.skip("the example has no inputs that make the model fail")

        for _ in range(3):
            with pytest.raises(CoreError) as caught:
                served.ask(example.failing)
            assert caught.value.message

            example.check(served.answer(example.inputs))

    def test_a_model_that_cannot_load_gives_the_reason_and_leaves_nothing_open(
        self, calls: CallLog, serve: Serve, example: Example
    ) -> None:
        served = serve(example, load=False)
        calls.fail(LOAD)

        with pytest.raises(CoreError, match="was told to fail"):
            served.load()

        assert calls.count(OPEN) == 0, "an instance was opened of a model that had not loaded"
        _ended_with(calls, BACKEND_CLOSE)

    def test_an_instance_that_cannot_open_unloads_the_model(
        self, calls: CallLog, serve: Serve, example: Example
    ) -> None:
        served = serve(example, load=False)
        calls.fail(OPEN)

        with pytest.raises(CoreError, match="was told to fail"):
            served.load()

        _ended_with(calls, UNLOAD, BACKEND_CLOSE)

    def test_a_model_that_failed_to_load_loads_once_the_cause_is_gone(
        self, calls: CallLog, serve: Serve, example: Example
    ) -> None:
        served = serve(example, load=False)
        for step in (LOAD, OPEN):
            calls.fail(step)
            with pytest.raises(CoreError):
                served.load()

        served.load()

        example.check(served.answer(example.inputs))

    def test_a_version_without_its_files_fails_with_a_reason(
        self, serve: Serve, example: Example, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        if not any(example.files.iterdir()):
            pytest.skip("the example's model needs no files")
        nothing = replace(example, files=tmp_path_factory.mktemp("nothing"))
        served = serve(nothing, load=False)

        try:
            served.load()
        except CoreError as error:
            assert "example" in error.message
        else:
            files = ", ".join(sorted(each.name for each in example.files.iterdir()))
            pytest.fail(
                f"a version without its files ({files}) has loaded: read them in load, so that no request "
                "finds out"
            )

    def test_a_cancelled_request_does_not_disturb_the_others(
        self, served: Served, example: Example
    ) -> None:
        def cancel_one(server: Any) -> None:
            server.models.infer(request_of(example.inputs)).cancel()

        for answer in served.while_asking([example.inputs] * 4, cancel_one):
            example.check(answer)


def _ended_with(calls: CallLog, *steps: str) -> None:
    found = calls.events[-len(steps) :]
    assert found == [*steps], (
        f"the last calls were {', '.join(found)}, they should be {', '.join(steps)}"
    )
