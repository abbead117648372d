"""Refuses the classes and arguments of a core.Backend that cannot work, when its author imports them."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

_WORDS = {"placement": ("thread", "inline", "auto", "callback"), "memory": ("host", "device")}
_ANSWERING = {"execute", "stream", "begin"}
_FOR_AUTHORS = {"file", "parameter"}  # authors call these methods and do not define them


def check_class(found: Any, what: str, base: type[Any], steps: tuple[str, ...]) -> None:
    """Raise TypeError for a class of core.Backend that core cannot use.

    what    the argument of core.Backend
    steps   methods that core calls on a worker thread
    """
    if not (isinstance(found, type) and issubclass(found, base)):
        raise TypeError(
            f"core.Backend({what}={found!r}): expected a class that inherits core.{base.__name__}, and not "
            "an object of it"
        )
    refuse_misspelt(found, base)
    for step in steps:
        if inspect.iscoroutinefunction(getattr(found, step)):
            raise TypeError(
                f"{found.__name__}.{step} is a coroutine function, but core calls it on a worker thread, "
                f"where it may block; write `def {step}`"
            )
    for name, words in _WORDS.items():
        value = getattr(found, name) if hasattr(base, name) else None
        if isinstance(value, str) and value not in words:  # it may also be a property
            raise TypeError(
                f"{found.__name__}.{name} is {value!r}, it must be one of {', '.join(words)}"
            )


def refuse_misspelt(found: type, base: type) -> None:
    """Raise TypeError for a method whose name is nearly that of a method of `base` which the class lacks."""
    own = {
        name
        for each in found.__mro__
        if not issubclass(base, each)
        for name, value in vars(each).items()
        if inspect.isroutine(value) and not name.startswith("_")
    }
    called = {name for name, value in vars(base).items() if inspect.isroutine(value)} - _FOR_AUTHORS
    lacks = called - own - (_ANSWERING if own & _ANSWERING else set())
    for name in sorted(own - called):
        if near := next((each for each in sorted(lacks) if _is_near(name, each)), ""):
            raise TypeError(
                f"{found.__name__} has a method '{name}', which core never calls; did you mean '{near}'? "
                f"If it is your own, call it '_{name}'"
            )


def _is_near(name: str, known: str) -> bool:
    """Return whether `name` may be a slip for `known`: the same letters or, if long, nearly the same."""
    if sorted(name) == sorted(known) or len(known) < 7 or abs(len(name) - len(known)) > 2:
        return sorted(name) == sorted(known)
    from difflib import SequenceMatcher  # slow to import, and few names come here

    ratio = SequenceMatcher(None, name, known).ratio()
    if known == "execute":  # without it the instance may have no answers at all
        return ratio > 0.8 and "_" not in name
    return ratio > 0.88 and not name.startswith(known)


def check_arguments(made: type, given: Mapping[str, Any]) -> None:
    """Raise TypeError for an argument that `made` lacks and whose name is nearly one that `made` has."""
    known = inspect.signature(made.__init__).parameters  # type: ignore[misc]  # of this class
    if any(each.kind is each.VAR_KEYWORD for each in known.values()):
        return
    for name in given.keys() - known:
        from difflib import get_close_matches

        if near := get_close_matches(name, known, 1):
            raise TypeError(f"{made.__name__} has no argument '{name}'; did you mean '{near[0]}'?")


def names(what: str, found: Iterable[str] | None) -> tuple[str, ...] | None:
    """Return an argument of names as a tuple. Raises TypeError for one str: its letters would be names."""
    if isinstance(found, str):
        raise TypeError(f"core.Backend({what}={found!r}): expected names, such as ({found!r},)")
    return None if found is None else tuple(found)
