"""What stands for Cython where a module that can be compiled runs as Python.

Modules with a .pxd beside them are compiled for the server's interpreter. Children with an interpreter of
their own, and an installation without a C compiler, run the same files as they are; there a class gets
`__slots__` of the attributes that it annotates, which a compiled one has in its .pxd.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T", bound=type)


def freelist(size: int) -> Callable[[T], T]:
    """Python has one for all objects."""
    return lambda cls: cls


def cclass(cls: T) -> T:
    """The class without a dict for each object."""
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
        """A model may change classes of Python as they are."""
