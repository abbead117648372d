"""Replaces the names of Cython in compiled modules that run as plain Python.

Modules with a .pxd file are compiled for the server's interpreter. Child processes with another interpreter,
and installations without a C compiler, run the same .py files. There a class gets `__slots__` from its
annotations; a compiled class has its attributes in the .pxd file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T", bound=type)


def freelist(size: int) -> Callable[[T], T]:
    """Do nothing: only compiled classes have a free list."""
    return lambda cls: cls


def cclass(cls: T) -> T:
    """Return the class with `__slots__`, so that its objects have no dict."""
    namespace: dict[str, Any] = dict(cls.__dict__)
    for name in ("__dict__", "__weakref__"):
        namespace.pop(name, None)
    slots = list(cls.__annotations__)
    if not any(hasattr(base, "__weakref__") for base in cls.__bases__):
        slots.append("__weakref__")
    namespace["__slots__"] = tuple(slots)
    return type(cls)(cls.__name__, cls.__bases__, namespace)


try:
    from backend_python.native.interface import open_to_changes as open_to_changes
except ImportError:  # nothing is compiled

    def open_to_changes(cls: type) -> None:
        """Do nothing: a model may change Python classes without this."""
