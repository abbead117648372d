"""Python models: Triton's `model.py`, unchanged, each instance in a process of its own.

    server/    the server's side: what core calls
    child/     the process of one instance, or of several, and the template that it is forked from
    api/       what model.py imports as triton_python_backend_utils
    environments/   other interpreters and packages than the server's
    apart/     models of other backends, in children
    runner.py  loads model.py and calls it; in a child, or in the server's process
    adapters.py   packages that make a TritonPythonModel of what is none
    compiled.py · plain.py   what is done with every byte: with core.native, and without
    both ends of the channel: protocol.py messages · arena.py shared memory · layout.py tensors in it ·
    strings.py BYTES · loans.py memory of GPUs · PROTOCOL.md explains it

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
