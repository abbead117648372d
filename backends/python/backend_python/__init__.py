"""Python models: Triton's `model.py`, unchanged, each instance in a process of its own.

server process                                   child process, one for each instance
  entry.py      the Backend object · model.py   Model
  complete.py   auto_complete_config, in a short-lived child
  instance.py   ModelInstance: which of the two ways
  process.py    a child: start, talk, end           child/       its main loop
  inprocess.py  without a child: thread, inline
                          runner.py   loads model.py and calls it, in either
                          api/        what model.py imports as triton_python_backend_utils
     both ends: protocol.py messages · arena.py shared memory · layout.py tensors in it · strings.py BYTES

A child imports this package without core: `backend` is looked up when somebody asks for it.
"""

from typing import Any

__all__ = ["backend"]


def __getattr__(name: str) -> Any:
    if name == "backend":
        from backend_python.entry import backend

        return backend
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
