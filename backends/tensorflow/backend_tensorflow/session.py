"""One session of TensorFlow: a graph with its variables and tables, and the functions that run parts of it.

Model ─► [Session] ─► function ─► arrays.  Imports TensorFlow.
"""

from __future__ import annotations

import gc
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from backend_tensorflow.files import text_of, unreadable
from backend_tensorflow.framework import CallableOptions, v1
from backend_tensorflow.graph_def import read_graph
from core.errors import CoreError, invalid

Function = Callable[..., list[np.ndarray]]
_MOST_FUNCTIONS = 32  # of different sets of outputs; those that were used last


class Session:
    """A loaded graph. `function` and the functions themselves may be used by several threads.

    Make it with `of_saved_model` or `of_graph_def`.
    """

    def __init__(self, graph: Any, options: Any):
        self._session = v1.Session(graph=graph, config=options)
        self._lock = threading.Lock()
        self._functions: OrderedDict[tuple[str, ...], Function] = OrderedDict()

    @classmethod
    def of_saved_model(
        cls, folder: Path, tags: Sequence[str], options: Any, place: str | None, model: str
    ) -> Session:
        """Return a session with the variables and tables of a SavedModel.

        options   a ConfigProto
        place     device of operators that name none, such as "/device:GPU:1"
        Raises CoreError(INTERNAL) if it cannot be read.
        """
        graph = v1.Graph()
        made = cls(graph, options)
        try:
            with graph.as_default(), graph.device(place):
                v1.saved_model.load(made._session, list(tags), str(folder))
        except Exception as error:
            made.close()
            raise unreadable(
                folder,
                model,
                f"TensorFlow cannot load it; copy or export it again ({text_of(error)})",
            ) from error
        return made

    @classmethod
    def of_graph_def(cls, path: Path, options: Any, place: str | None, model: str) -> Session:
        """Return a session with the graph of a file. Raises CoreError(INTERNAL) if it cannot be read."""
        return cls(read_graph(path, model, place), options)

    def run_operators(self, file: Path, model: str) -> None:
        """Run the operators that a JSON file names, {"init_ops": ["name", …]}, in this order.

        Raises CoreError(INVALID) if the file has another content, or an operator fails.
        """
        for name in _operators(file, model):
            try:
                self._session.run(self._session.graph.get_operation_by_name(name))
            except Exception as error:
                raise invalid(
                    f"model '{model}': the operator '{name}' of '{file}' failed: {text_of(error)}"
                ) from error

    def function(self, feeds: Sequence[str], fetches: Sequence[str]) -> Function:
        """Return the function: arrays for `feeds` → arrays for `fetches`. Both raise TensorFlow's errors.

        feeds     names of tensors; the same in every call
        fetches   names of tensors
        """
        key = tuple(fetches)
        with self._lock:
            if (found := self._functions.get(key)) is not None:
                self._functions.move_to_end(key)
                return found
        # Without the lock: TensorFlow optimizes the graph meanwhile, and other requests go on.
        made = self._function(feeds, fetches)
        with self._lock:
            found = self._functions.setdefault(key, made)
            self._functions.move_to_end(key)
            oldest = len(self._functions) > _MOST_FUNCTIONS and self._functions.popitem(last=False)
        del oldest  # not under the lock: its end calls TensorFlow
        return found

    def _function(self, feeds: Sequence[str], fetches: Sequence[str]) -> Function:
        # The public make_callable runs the same, and takes six times as long for a small graph.
        make = getattr(self._session, "_make_callable_from_options", None)
        if make is None:
            found: Function = self._session.make_callable(list(fetches), list(feeds))
        else:
            found = make(CallableOptions(feed=feeds, fetch=fetches))
        return found

    def close(self) -> None:
        """Free the graph with its weights. `function` must not be called any more."""
        self._functions.clear()
        self._session.close()
        self._session = None
        gc.collect()  # the graph is in a reference cycle with its operators


def _operators(file: Path, model: str) -> list[str]:
    try:
        found = json.loads(file.read_bytes())["init_ops"]
        if isinstance(found, list) and all(isinstance(each, str) for each in found):
            return found
        reason = "expected a list of names"
    except OSError as error:
        reason = error.strerror or "it cannot be read"
    except (ValueError, KeyError, TypeError):
        reason = "expected an object with the key init_ops"
    raise _no_operators(file, model, reason)


def _no_operators(file: Path, model: str, reason: str) -> CoreError:
    return invalid(
        f"model '{model}': cannot take operators from '{file}' (parameter 'TF_INIT_OPS_FILE'): {reason}; "
        'write such as {"init_ops": ["init"]}'
    )
