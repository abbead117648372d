"""Diary: what core called of a backend, in which order, and where it is to fail.

While a diary is kept, the backend makes its models and instances from subclasses that take notes.
"""

from __future__ import annotations

import functools
import inspect
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from core.backend import Backend, ModelInstance

BACKEND_OPEN, BACKEND_CLOSE = "Backend.open", "Backend.close"
LOAD, UNLOAD = "Model.load", "Model.unload"
OPEN, EXECUTE, CLOSE = "ModelInstance.open", "ModelInstance.execute", "ModelInstance.close"


class Injected(RuntimeError):
    """What a step raises that the test wanted to fail."""


class Diary:
    """Notes of any thread.

    events    in the order in which the calls began
    made      weak references to the models and instances that were made
    """

    def __init__(self) -> None:
        self.events: list[str] = []
        self.made: list[weakref.ref[Any]] = []
        self._failing: Counter[str] = Counter()
        self._lock = threading.Lock()

    def fail(self, event: str, times: int = 1) -> None:
        """Let the next `times` calls of that step raise before they begin."""
        self._failing[event] = times

    def instances(self) -> list[ModelInstance]:
        """Those that are still there."""
        made = [each() for each in self.made]
        return [each for each in made if isinstance(each, ModelInstance)]

    def is_native(self) -> bool:
        """Whether an instance that is open executes C functions, of which Python has no notes."""
        return any(each.native is not None for each in self.instances())

    def note(self, event: str) -> None:
        with self._lock:
            self.events.append(event)
            fails = self._failing[event] > 0
            self._failing[event] -= fails
        if fails:
            raise Injected(f"{event} was told to fail")

    def count(self, event: str) -> int:
        return self.events.count(event)


@contextmanager
def diary_of(backend: Backend) -> Iterator[Diary]:
    """Keep a diary of `backend` inside the with statement."""
    diary = Diary()
    model, instance = backend.model, backend.instance
    backend.model = _noting(model, diary, {"load": LOAD, "unload": UNLOAD})
    steps = {
        "open": OPEN,
        "execute": EXECUTE,
        "begin": EXECUTE,
        "stream": EXECUTE,
        "close": CLOSE,
    }
    backend.instance = _noting(instance, diary, steps)
    backend.open = _noted(backend.open, diary, BACKEND_OPEN)  # type: ignore[method-assign]
    backend.close = _noted(backend.close, diary, BACKEND_CLOSE)  # type: ignore[method-assign]
    try:
        yield diary
    finally:
        backend.model, backend.instance = model, instance
        del backend.open, backend.close  # the class's own are seen again


def _noting(made: type[Any], diary: Diary, steps: dict[str, str]) -> type[Any]:
    """A subclass whose steps are noted; a step that the class does not have is left out."""

    class Noting(made):  # type: ignore[misc]
        def __init__(self, *args: Any, **kwargs: Any):
            super().__init__(*args, **kwargs)
            diary.made.append(weakref.ref(self))

    for name, event in steps.items():
        # One that wraps the default of `stream` would look like an author's own.
        if getattr(made, name, ModelInstance.stream) is not ModelInstance.stream:
            setattr(Noting, name, _noted(getattr(made, name), diary, event))
    Noting.__name__ = Noting.__qualname__ = made.__name__
    return Noting


def _noted(function: Callable[..., Any], diary: Diary, event: str) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def later(*args: Any, **kwargs: Any) -> Any:
            diary.note(event)
            return await function(*args, **kwargs)

        return later

    @functools.wraps(function)
    def now(*args: Any, **kwargs: Any) -> Any:
        diary.note(event)
        return function(*args, **kwargs)

    return now
