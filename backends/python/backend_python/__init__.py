"""Python models: Triton's `model.py`, unchanged, each instance in a process of its own.

server/ is what core calls, child/ the process of an instance, api/ what model.py imports, apart/ another
backend in a child. PROTOCOL.md explains the channel.

A child imports this package and of core only `core.native`, and in an environment of its own nothing of
core: `backend` is looked up when somebody asks for it.
"""

from typing import Any

__all__ = ["backend"]


def __getattr__(name: str) -> Any:
    if name == "backend":
        from backend_python.entry import backend

        return backend
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
