"""The control operations model_settings.set, rollback, reset, get and models.

set ─► [plan] here ─► put in every process, or in none ─► the file of --settings-write
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, NoReturn, ParamSpec, TypeVar, cast

from core.control import Area, Changed, Operation, change, here
from core.control.audit import audited
from core.errors import CoreError, Kind, invalid
from core_settings.live import Settings, merged
from core_settings.server import Plan, ServerSettings
from core_settings.state import State

logger = logging.getLogger("core")

P = ParamSpec("P")
T = TypeVar("T")
A = TypeVar("A", bound="ModelSettingsControl")

_BEFORE = "the others keep their settings of before"
_TRIES = 20  # of a change, if other workers change the same model at the same time


def planned(
    body: Callable[Concatenate[A, P], Awaitable[T]],
) -> Callable[Concatenate[A, P], Coroutine[Any, Any, T]]:
    """Declare a change that this process plans. The audit gets what changes, which only the plan says."""

    @wraps(body)
    async def method(self: A, *args: P.args, **kwargs: P.kwargs) -> T:
        return await body(self, *args, **kwargs)

    def operation_of(area: str) -> Operation:
        summary = (body.__doc__ or "").partition("\n")[0]
        name = f"{area}.{body.__name__}"
        return Operation(name, "model-repository", True, summary, body, shared=False)

    method.operation_of = operation_of  # type: ignore[attr-defined]
    return cast("Callable[Concatenate[A, P], Coroutine[Any, Any, T]]", method)


class ModelSettingsControl(Area, name="model_settings"):
    """Changes the batching, the queues, the rate limits and the cache of models that serve."""

    def __init__(self, settings: ServerSettings):
        self._settings = settings
        self._writing: dict[str, asyncio.Lock] = {}  # key → its file is written

    @planned
    async def set(self, model: str, settings: dict[str, Any]) -> dict[str, Any]:
        """Change settings of a model while it serves; null goes back to its configuration. Return all."""

        def change(key: str, state: State) -> dict[str, Any]:
            # Read before the merge, so that an error shows what the caller has sent.
            return merged(state.settings, self._settings.read(key, settings))

        return await self._change("set", model, change)

    @planned
    async def rollback(self, model: str, number: int) -> dict[str, Any]:
        """Go back to the settings after an earlier change; number 0: the configuration. Return all."""
        if type(number) is not int or number < 0:
            raise invalid(f"number is {number!r}, expected the number of a change, or 0")
        change = lambda key, state: state.settings_of(key, number)  # noqa: E731
        return await self._change(f"rollback to {number}", model, change)

    @planned
    async def reset(self, model: str) -> dict[str, Any]:
        """Go back to the configuration of a model; its history stays. Return all."""
        return await self._change("reset", model, lambda key, state: {})

    @here("model-repository")
    def get(self, model: str) -> dict[str, Any]:
        """Return the settings of a model, what is in force, what its configuration says, and the history."""
        return self._settings.report(model)

    @here("model-repository")
    def models(self) -> dict[str, int]:
        """Return the names of the models with live settings, each with the number of its last change."""
        return dict(self._settings.changed())

    @change("model-repository", subject="settings {model}", otherwise=_BEFORE, internal=True)
    async def put(self, model: str, state: dict[str, Any]) -> Changed:
        """Put the state of a model in force that another process has planned."""
        return Changed(undo=self._settings.put(model, State.of(state)))

    async def _change(
        self, operation: str, model: str, change: Callable[[str, State], Settings]
    ) -> dict[str, Any]:
        for left in reversed(range(_TRIES)):
            try:
                return await self._try(operation, model, change)
            except CoreError as error:
                if error.kind is not Kind.ALREADY_EXISTS or not left:
                    raise
        raise AssertionError

    async def _try(
        self, operation: str, model: str, change: Callable[[str, State], Settings]
    ) -> dict[str, Any]:
        row = f"{self.name}.{operation.partition(' ')[0]}"
        subject = f"model {model}"
        try:
            plan = self._settings.plan(model, operation, change)
        except CoreError as error:
            await audited(row, subject, _raise(error))
        note = f", {operation}" if " " in operation else ""
        subject += f", number {plan.state.number}{note}: {plan.text or 'no change'}"
        await audited(row, subject, self._everywhere(plan))
        report = self._settings.report(model)
        if self._settings.files.writes:
            report |= await self._write(plan)
        return report

    async def _everywhere(self, plan: Plan) -> None:
        """Put a plan in force in every process. Raises ALREADY_EXISTS if another change came first."""
        if not plan.changes:
            return
        if self.exchange is None:
            self._settings.put(plan.key, plan.state)
            return
        arguments = (plan.key, plan.state.as_json())
        subject = f"settings {plan.key}"
        answers = await self.exchange.change(f"{self.name}.put", arguments, subject, False)
        answers.all_done(_BEFORE)

    async def _write(self, plan: Plan) -> dict[str, str]:
        """Write the file of a model. The change is in force by now, so that a failure is no error of it."""
        async with self._writing.setdefault(plan.key, asyncio.Lock()):
            while True:
                state = self._settings.state(plan.key)
                try:
                    path = await asyncio.to_thread(self._settings.files.write, plan.source, state)
                except CoreError as error:
                    logger.error("%s", error.message)
                    return {"not_written": error.message}
                # Another worker may have written a later state before this one was.
                if self._settings.state(plan.key) is state:
                    return {"written": str(path)}


async def _raise(error: CoreError) -> NoReturn:
    raise error
