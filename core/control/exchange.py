"""Exchange: what the control plane needs of several processes that serve as one.

Operation ─► [Exchange] ─► every process, this one too ─► ProcessResults ─► Operation, which merges them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from core.errors import CoreError, unavailable


@dataclass(frozen=True)
class Changed:
    """The result of an operation that has changed something.

    value   the result for the caller
    idle    whether there was nothing to change
    undo    brings back the state before the change; None if that is not needed
    """

    value: Any = None
    idle: bool = False
    undo: Callable[[], object] | None = None


@dataclass(frozen=True)
class ProcessResults:
    """The results of one operation in all processes.

    own        number of this process
    values     process → its result
    errors     process → the error that it raised
    silent     processes that did not answer in time
    complete   whether every process has been up at least once; one may have ended since
    restarts   process → how often it has been started again
    """

    own: int
    values: dict[int, Any]
    errors: dict[int, CoreError]
    silent: tuple[int, ...] = ()
    complete: bool = True
    restarts: Mapping[int, int] = field(default_factory=dict)

    def all(self) -> list[Any]:
        """Return every result. Raises UNAVAILABLE if a process is silent, else the first error, if any."""
        if self.silent:
            raise unavailable(f"worker {self.silent[0]} of the server does not answer")
        for error in self.errors.values():
            raise error
        return list(self.values.values())

    def all_done(self, otherwise: str) -> None:
        """Raise the first error, naming its process if others succeeded; UNAVAILABLE if there is no result.

        otherwise   what the others do then, as the end of the error's text
        """
        if self.errors and not self.values:
            raise next(iter(self.errors.values()))  # the first is that of this process
        for number, error in self.errors.items():
            text = error.message.rstrip("\n")
            raise CoreError(error.kind, f"{text} (worker {number}; {otherwise})")
        if not self.values:
            raise unavailable("Server exiting")


Handler = Callable[..., Awaitable[Any]]


class Exchange(Protocol):
    """This process among several that serve as one. Not thread-safe: call from the event loop only.

    number     which process it is, from 1 on
    count      how many there are
    changing   whether models are being changed here, at the start or by an operation
    """

    number: int
    count: int

    @property
    def changing(self) -> bool: ...

    def serve(self, handlers: Mapping[str, Handler]) -> None:
        """Call these when any process asks: name of the operation → coroutine function.

        Replaces the handlers of an earlier call.
        A handler returns a value that JSON can hold (bytes included), or Changed.
        """

    async def ask(self, operation: str, arguments: tuple[Any, ...]) -> ProcessResults:
        """Call an operation that changes nothing, in every process. Return the results, also errors."""

    async def change(
        self, operation: str, arguments: tuple[Any, ...], subject: str, forgets: bool
    ) -> ProcessResults:
        """Call an operation that changes something in every process, one change after the other.

        If it fails in some, the others undo it.

        subject   what is changed: a process that starts later repeats the last change of each subject
        forgets   whether the change restores the state of the start, so that nothing is repeated
        """

    async def alone(self, change: Awaitable[None]) -> None:
        """Await `change`, which concerns this process only: within it, `agree` asks no other process."""

    def table(self, name: str) -> Any:
        """Return the table of that name that all processes share. Raises KeyError for an unknown name."""

    async def agree(self, model: str, objection: str) -> str:
        """Return why the processes object to serving what they have just loaded, "" if none does.

        objection   of this process, "" for none; returned unchanged if no change of all processes runs
        """
