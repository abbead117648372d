"""Operation: one row of the table of control operations, made by a decorator of the method that does it.

caller ─► area method ─► [Operation] ─► the method itself, or in every process by way of the Exchange ─► merge

    class RepositoryControl(Area, name="repository"):
        @change("model-repository", subject="model {name}", otherwise="the others have unloaded it")
        async def unload(self, name: str, unload_dependents: bool = False) -> None: ...

To add an operation, add a method. The exchange between processes, roles, restrictions, the audit, and
endpoints of frontends with their description follow from its row.
A plugin or a frontend adds areas of its own by `server.control.add(area)`.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from core.control.audit import audited
from core.control.exchange import Changed, Exchange, Handler, ProcessResults
from core.errors import invalid

P = ParamSpec("P")
T = TypeVar("T")
A = TypeVar("A", bound="Area")

Arguments = Mapping[str, Any]
Merge = Callable[[ProcessResults, Arguments], Any]
Subject = Callable[[Arguments], str]

# fmt: off
CATEGORIES = (
    "health", "metadata", "inference", "shared-memory", "model-config", "model-repository", "statistics",
    "trace", "logging", "metrics",
)
# fmt: on
"""Kinds of requests. Roles and restrictions of frontends name them."""


@dataclass(frozen=True)
class Operation:
    """Facts about one control operation, for exchanges, frontends and the audit.

    name       area and method, such as "repository.load"
    category   one of CATEGORIES
    changes    whether it changes the server
    summary    the first line of its docstring
    shared     whether all processes take part; else any of them has the answer
    merge      makes one result of those of all processes
    encode     turns a result into what JSON can hold, for `merge` and for clients of a frontend
    internal   whether it is for code of the server only: no frontend offers it to clients
    asked      selects, from the arguments of the caller, those that each process gets
    subject    what is changed, see Exchange.change
    hides_subject   whether the subject is a secret, which the audit must not write
    forgets    see Exchange.change
    """

    name: str
    category: str
    changes: bool
    summary: str
    body: Callable[..., Any]
    shared: bool = True
    internal: bool = False
    merge: Merge | None = None
    encode: Callable[[Any], Any] | None = None
    asked: Callable[[Arguments], tuple[Any, ...]] = lambda arguments: tuple(arguments.values())
    subject: Subject = lambda arguments: ""
    hides_subject: bool = False
    forgets: bool = False

    @property
    def method(self) -> str:
        """Return the name of its method: "load" of "repository.load"."""
        return self.body.__name__

    def arguments(self, area: Area, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Arguments:
        """Return the caller's arguments by name, with defaults."""
        bound = inspect.signature(self.body).bind(area, *args, **kwargs)
        bound.apply_defaults()
        return {name: value for name, value in bound.arguments.items() if name != "self"}

    async def perform(self, area: Area, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Do the operation here or in every process; return its result. The audit logs a change."""
        if not self.changes and area.exchange is None:
            return await self.body(area, *args, **kwargs)
        arguments = self.arguments(area, args, kwargs)
        if area.exchange is None:
            work = self.here(area, arguments)
        else:
            work = self.everywhere(area.exchange, arguments)
        if not self.changes:
            return await work
        return await audited(self.name, "" if self.hides_subject else self.subject(arguments), work)

    async def here(self, area: Area, arguments: Arguments) -> Any:
        """Do the operation in this process. Return its result; of a Changed, the value."""
        value = await self.body(area, **arguments)
        return value.value if isinstance(value, Changed) else value

    async def everywhere(self, exchange: Exchange, arguments: Arguments) -> Any:
        """Do the operation in every process. Return what `merge` makes of the results; None without it."""
        asked = self.asked(arguments)
        if self.changes:
            answers = await exchange.change(self.name, asked, self.subject(arguments), self.forgets)
        else:
            answers = await exchange.ask(self.name, asked)
        return None if self.merge is None else self.merge(answers, arguments)


OPERATIONS: dict[str, Operation] = {}
"""Every operation by its name: the table of the control plane."""


class Area:
    """Operations of one kind. Not thread-safe: call from the event loop only.

    name         of the area, for example class RepositoryControl(Area, name="repository")
    exchange     None for a server of one process
    operations   its rows of the table

    A subclass enters its operations in OPERATIONS. Raises CoreError(INVALID) for an unknown category and for
    the name of another operation.
    """

    exchange: Exchange | None = None
    name: str
    operations: tuple[Operation, ...] = ()

    def __init_subclass__(cls, name: str) -> None:
        cls.name = name
        makers = [getattr(each, "operation_of", None) for each in vars(cls).values()]
        cls.operations = tuple(make(name) for make in makers if make is not None)
        for each in cls.operations:
            _check(each)
        OPERATIONS.update({each.name: each for each in cls.operations})

    def handlers(self) -> dict[str, Handler]:
        """Return name → function of each shared operation: what this process does when any process asks."""
        return {each.name: _bound(each, self) for each in self.operations if each.shared}


def _check(operation: Operation) -> None:
    if operation.category not in CATEGORIES:
        raise invalid(
            f"control operation '{operation.name}' has the unknown category '{operation.category}'; expected "
            f"one of {', '.join(CATEGORIES)}"
        )
    # The same method comes again when its module is imported again.
    known = _place(OPERATIONS.get(operation.name, operation))
    if known != (place := _place(operation)):
        raise invalid(
            f"control operation '{operation.name}' is both {known} and {place}; give one area another name"
        )


def _place(operation: Operation) -> str:
    return f"{operation.body.__module__}.{operation.body.__qualname__}"


def _bound(operation: Operation, area: Area) -> Handler:
    async def handler(*arguments: Any) -> Any:
        value = await operation.body(area, *arguments)
        return value if operation.encode is None else operation.encode(value)

    return handler


def here(
    category: str, **more: Any
) -> Callable[[Callable[Concatenate[A, P], T]], Callable[Concatenate[A, P], T]]:
    """Declare an operation that changes nothing and that any process can do alone.

    more   `encode` and `internal` of Operation
    """

    def decorate(body: Callable[Concatenate[A, P], T]) -> Callable[Concatenate[A, P], T]:
        _mark(body, body, category, changes=False, shared=False, **more)
        return body

    return decorate


Body = Callable[Concatenate[A, P], Awaitable[T]]
Method = Callable[Concatenate[A, P], Coroutine[Any, Any, T]]


def question(
    category: str, merge: Merge, **more: Any
) -> Callable[[Body[A, P, T]], Method[A, P, T]]:
    """Declare an operation that changes nothing and that asks every process.

    merge   (answers, arguments of the caller) → the result; may raise CoreError
    more    `asked`, `encode` and `internal` of Operation
    """
    return lambda body: _performed(body, category, changes=False, merge=merge, **more)


def change(
    category: str,
    *,
    otherwise: str,
    subject: str | Subject = "",
    **more: bool,
) -> Callable[[Body[A, P, Any]], Method[A, P, Any]]:
    """Declare an operation that every process runs, or none. Its result is that of this process.

    otherwise   end of the error text if it fails in one process: the state of the other processes
    subject     see Exchange.change and the audit; a text may have the names of arguments in braces
    more        `forgets`, `hides_subject` and `internal` of Operation
    """
    text = subject

    def subject_of(arguments: Arguments) -> str:
        return text.format(**arguments) if isinstance(text, str) else text(arguments)

    def merge(answers: ProcessResults, arguments: Arguments) -> Any:
        answers.all_done(otherwise)
        return answers.values.get(answers.own)

    row = {"changes": True, "merge": merge, "subject": subject_of, **more}
    return lambda body: _performed(body, category, **row)


def _performed(body: Body[A, P, T], category: str, **row: Any) -> Method[A, P, T]:
    """Return the method that callers see: it does the operation here or in every process."""

    @wraps(body)
    async def method(self: A, *args: P.args, **kwargs: P.kwargs) -> Any:
        operation = OPERATIONS[f"{type(self).name}.{body.__name__}"]
        return await operation.perform(self, args, kwargs)

    _mark(method, body, category, **row)
    found: Any = method
    return cast(Method[A, P, T], found)


def _mark(method: Any, body: Callable[..., Any], category: str, **row: Any) -> None:
    summary = (inspect.getdoc(body) or "").partition("\n")[0]

    def operation_of(area: str) -> Operation:
        name = f"{area}.{body.__name__}"
        return Operation(name, category, summary=summary, body=body, **row)

    method.operation_of = operation_of
