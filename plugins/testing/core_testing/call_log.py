"""CallLog: the calls that core makes to a backend, in order, and calls that a test makes fail.

Inside `call_log_of`, the backend makes its models and instances from subclasses that record each call.
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
    """The error of a call that the test makes fail with `CallLog.fail`."""


class CallLog:
    """The calls of one backend, its models and its instances, from all threads.

    events    names of the calls, such as LOAD or EXECUTE, in the order in which the calls began
    made      weak references to the models and instances that the backend made
    """

    def __init__(self) -> None:
        self.events: list[str] = []
        self.made: list[weakref.ref[Any]] = []
        self._failing: Counter[str] = Counter()
        self._lock = threading.Lock()

    def fail(self, event: str, times: int = 1) -> None:
        """Make the next `times` calls named `event` raise Injected before they begin."""
        self._failing[event] = times

    def instances(self) -> list[ModelInstance]:
        """Return the instances that still exist."""
        made = [each() for each in self.made]
        return [each for each in made if isinstance(each, ModelInstance)]

    def is_native(self) -> bool:
        """Return whether an instance executes C functions, whose calls the log does not see."""
        return any(each.native is not None for each in self.instances())

    def record(self, event: str) -> None:
        """Add a call to the log. Raises Injected if the test makes this call fail."""
        with self._lock:
            self.events.append(event)
            fails = self._failing[event] > 0
            self._failing[event] -= fails
        if fails:
            raise Injected(f"{event} was told to fail")

    def count(self, event: str) -> int:
        """Return how many calls named `event` the log has."""
        return self.events.count(event)


@contextmanager
def call_log_of(backend: Backend) -> Iterator[CallLog]:
    """Yield a log of the calls of `backend`, and of the models and instances made in the with statement."""
    calls = CallLog()
    model, instance = backend.model, backend.instance
    backend.model = _recording(model, calls, {"load": LOAD, "unload": UNLOAD})
    steps = {"open": OPEN, "close": CLOSE}
    steps |= dict.fromkeys(("execute", "begin", "stream"), EXECUTE)
    backend.instance = _recording(instance, calls, steps)
    backend.open = _recorded(backend.open, calls, BACKEND_OPEN)  # type: ignore[method-assign]
    backend.close = _recorded(backend.close, calls, BACKEND_CLOSE)  # type: ignore[method-assign]
    try:
        yield calls
    finally:
        backend.model, backend.instance = model, instance
        del backend.open, backend.close  # uncovers the methods of the class


def _recording(made: type[Any], calls: CallLog, steps: dict[str, str]) -> type[Any]:
    """Return a subclass of `made` that adds its objects to `calls.made` and records calls of its methods.

    steps   method name → name of the call in the log. Methods that `made` lacks, and the `stream` that
            it inherits from ModelInstance, are left out
    """

    class Recording(made):  # type: ignore[misc]
        def __init__(self, *args: Any, **kwargs: Any):
            super().__init__(*args, **kwargs)
            calls.made.append(weakref.ref(self))

    for name, event in steps.items():
        # The default `stream` stays unwrapped: a wrapper would look like a method of the author.
        if getattr(made, name, ModelInstance.stream) is not ModelInstance.stream:
            setattr(Recording, name, _recorded(getattr(made, name), calls, event))
    Recording.__name__ = Recording.__qualname__ = made.__name__
    return Recording


def _recorded(function: Callable[..., Any], calls: CallLog, event: str) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def later(*args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True  # errors name the code of the backend
            calls.record(event)
            return await function(*args, **kwargs)

        return later

    @functools.wraps(function)
    def now(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        calls.record(event)
        return function(*args, **kwargs)

    return now
