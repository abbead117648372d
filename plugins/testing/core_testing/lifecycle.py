"""Calls come in order, and an unload leaves nothing behind."""

from __future__ import annotations

import gc

from core_testing import leftovers
from core_testing.call_log import (
    BACKEND_CLOSE,
    BACKEND_OPEN,
    CLOSE,
    EXECUTE,
    LOAD,
    OPEN,
    UNLOAD,
    CallLog,
)
from core_testing.example import Example
from core_testing.kit import Kit, Serve

GROWTH = 512 * 1024  # bytes that a load may keep; less is noise of the allocator


class Lifecycle(Kit):
    def test_calls_come_from_backend_to_instance_and_back(
        self, calls: CallLog, serve: Serve, example: Example
    ) -> None:
        served = serve(example)
        expected = [BACKEND_OPEN, LOAD, OPEN, EXECUTE, CLOSE, UNLOAD, BACKEND_CLOSE]
        if calls.is_native():
            expected.remove(EXECUTE)
        served.ask(example.inputs)
        served.unload()

        assert calls.events == expected, (
            f"core calls {', '.join(expected)}; these calls were seen: {', '.join(calls.events)}"
        )

    def test_every_instance_is_opened_and_closed(
        self, calls: CallLog, serve: Serve, example: Example
    ) -> None:
        self.needs("cpu")
        served = serve(example, instances=3)
        served.unload()

        for step, expected in ((LOAD, 1), (UNLOAD, 1), (OPEN, 3), (CLOSE, 3)):
            found = calls.count(step)
            assert found == expected, (
                f"{step} was called {found} times for a model with three instances, not {expected}: only "
                "core may call it"
            )

    def test_an_instance_may_be_closed_twice(self, serve: Serve, example: Example) -> None:
        instance = example.backend.instance
        close = instance.close
        errors: list[Exception] = []

        class ClosedTwice(instance):  # type: ignore[misc, valid-type]
            def close(self) -> None:
                close(self)
                try:
                    close(self)
                except Exception as error:  # core would catch and log it
                    errors.append(error)

        example.backend.instance = ClosedTwice
        try:
            serve(example).unload()
        finally:
            example.backend.instance = instance

        assert errors == [], f"the second close of an instance raised {errors[0]!r}"

    def test_a_model_can_be_loaded_again_after_it_was_unloaded(
        self, serve: Serve, example: Example
    ) -> None:
        served = serve(example)

        for _ in range(2):
            served.unload()
            served.load()
            example.check(served.answer(example.inputs))

    def test_an_unload_in_one_server_does_not_affect_another_server(
        self, serve: Serve, example: Example
    ) -> None:
        first, second = serve(example), serve(example)
        first.ask(example.inputs)

        first.unload()

        example.check(second.answer(example.inputs))

    def test_no_thread_or_process_stays_after_the_unload(
        self, serve: Serve, example: Example
    ) -> None:
        served = serve(example, load=False)
        served.load()  # the framework starts its threads of the process now
        served.unload()
        threads, children = leftovers.threads(), leftovers.children()

        served.load()
        served.ask(example.inputs)
        served.unload()

        left = leftovers.left(lambda: leftovers.threads() - threads)
        assert not left, f"threads stay after the unload: {left}"
        left = leftovers.left(lambda: leftovers.children() - children)
        assert not left, f"child processes stay after the unload: {left}"

    def test_nothing_stays_after_many_loads(self, serve: Serve, example: Example) -> None:
        """Compare files, shared memory and threads; measure memory after a third of the loads."""
        served = serve(example, load=False)
        third = max(1, self.loads // 3)

        def load_once() -> None:
            served.load()
            served.ask(example.inputs)
            served.unload()

        load_once()
        files, threads = leftovers.open_files(), leftovers.threads()
        memory = leftovers.shared_memory()

        for _ in range(third):
            load_once()
        gc.collect()
        grown = leftovers.growth(load_once, third)

        loads = 3 * third
        few_files = leftovers.settles(lambda: leftovers.open_files() < files + loads // 2)
        assert few_files, (
            f"files stay open: {leftovers.open_files() - files} more after {loads} loads and unloads"
        )
        left = leftovers.left(lambda: leftovers.new_shared_memory(memory))
        assert not left, f"shared memory stays after the unloads: {left}"
        few_threads = leftovers.settles(lambda: len(leftovers.threads() - threads) < loads // 2)
        assert few_threads, (
            f"threads stay: {len(leftovers.threads() - threads)} more after {loads} loads and unloads"
        )
        assert grown < third * GROWTH, f"each load leaves {grown // third} bytes"

    def test_nothing_holds_a_model_or_instance_after_the_unload(
        self, calls: CallLog, serve: Serve, example: Example
    ) -> None:
        served = serve(example)
        served.ask(example.inputs)
        served.unload()

        def held() -> list[str]:
            gc.collect()
            return [type(there).__name__ for made in calls.made if (there := made()) is not None]

        left = leftovers.left(held)
        assert not left, (
            f"something still holds {left} after the unload: a global, a cache, a thread or a callback"
        )
