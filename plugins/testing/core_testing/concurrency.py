"""Instances run at the same time; loads and unloads happen under traffic."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from core import plugins
from core.backend import Backend
from core.errors import CoreError
from core_testing.call_log import CLOSE, EXECUTE, CallLog
from core_testing.example import MODEL, Example
from core_testing.kit import Kit, Serve
from core_testing.served import Served, request_of

MANY = 1000  # requests in flight
EIGHT = tuple(f"{MODEL}_{i}" for i in range(8))


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

    def test_eight_models_of_one_backend_load_at_the_same_time(
        self, serve: Serve, example: Example
    ) -> None:
        served = serve(example, copies=EIGHT)

        for name in EIGHT:
            example.check(served.answer(example.inputs, name))

    def test_eight_models_in_child_processes_load_at_the_same_time(
        self, serve: Serve, example: Example
    ) -> None:
        self.needs("cpu")
        name = _installed_name(example.backend)

        served = serve(example, copies=EIGHT, apart=name)

        for each in EIGHT:
            example.check(served.answer(example.inputs, each))

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
        self, calls: CallLog, serve: Serve, example: Example
    ) -> None:
        served = serve(example)

        for answer in served.while_asking(
            [example.inputs] * 10, lambda server: server.models.unload(MODEL)
        ):
            example.check(answer)
        served.unload()
        executions = [i for i, event in enumerate(calls.events) if event == EXECUTE]
        assert calls.events.index(CLOSE) > max(executions, default=-1)


def _installed_name(backend: Backend) -> str:
    """Return the name under which the backend is installed.

    Skips the test if the backend starts its own processes, if no plugin can run a model in a child process,
    or if the backend is not installed, so that a child process could not import it.
    """
    if isinstance(backend, plugins.HostedBackend):
        pytest.skip("the backend has processes of its own")
    if not plugins.can_isolate():
        pytest.skip("needs a process host")
    for name, plugin in plugins.available_backends().items():
        # A module that is not imported yet cannot have the backend of the example.
        if plugin.entries[0].module in sys.modules and plugins.backend(name) is backend:
            return name
    pytest.skip("the backend of the example is not installed")


def _cancel_ten(example: Example) -> Any:
    async def act(server: Any) -> None:
        replies = [server.models.infer(request_of(example.inputs)) for _ in range(10)]
        for reply in replies:
            reply.cancel()
        for reply in replies:  # each ends, with an answer or an error
            try:
                await reply
            except CoreError:
                pass

    return act
