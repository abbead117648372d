"""One interpreter: arrays ─► run ─► arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType, load_delegate

from backend_litert.reading import litert_version, unreadable
from backend_litert.settings import Settings
from backend_litert.tensors import Port, Ports
from core.errors import CoreError, invalid

_FLEX = "Select TensorFlow op"


class Runs:
    """An interpreter of a file, for one signature. One thread at a time.

    content   the file; every interpreter of a version uses the same memory
    """

    def __init__(
        self, content: bytes, path: Path, model: str, ports: Ports, settings: Settings, threads: int
    ):
        self._model, self._path = model, path
        self._inputs, self._outputs = ports.inputs, ports.outputs
        self._interpreter = self._open(content, settings, threads)
        self._shapes: dict[str, tuple[int, ...]] = {}  # of the inputs, as they are allocated
        self._allocate()
        self._runner: Any = None
        if ports.graph:  # the interpreter itself runs the first graph only
            self._runner = self._interpreter.get_signature_runner(ports.key)

    def run(self, arrays: Mapping[str, np.ndarray], names: Sequence[str]) -> dict[str, np.ndarray]:
        """Return copies of the outputs with these names. Raises RuntimeError or ValueError of LiteRT.

        arrays   name → array with the rank and datatype of the port, in the machine's byte order
        """
        interpreter = self._interpreter
        if self._runner is not None:
            interpreter.reset_all_variables()
            found = self._runner(**arrays)
            return {name: found[name] for name in names}
        changed = False
        for name, array in arrays.items():
            if self._shapes.get(name) != array.shape:
                interpreter.resize_tensor_input(self._inputs[name].index, array.shape)
                self._shapes[name] = array.shape
                changed = True
        if changed:
            try:
                interpreter.allocate_tensors()
            except BaseException:
                self._shapes.clear()  # the next run allocates again
                raise
        interpreter.reset_all_variables()
        for name, array in arrays.items():
            interpreter.set_tensor(self._inputs[name].index, array)
        interpreter.invoke()
        return {name: interpreter.get_tensor(self._outputs[name].index) for name in names}

    def _open(self, content: bytes, settings: Settings, threads: int) -> Any:
        resolver = OpResolverType.AUTO
        if not settings.xnnpack:
            resolver = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
        delegates = [self._delegate(settings)] if settings.delegate else []
        try:
            return Interpreter(
                model_content=content,
                num_threads=threads,
                experimental_delegates=delegates,
                experimental_op_resolver_type=resolver,
            )
        except Exception as error:
            raise self._not_opened(error) from error

    def _delegate(self, settings: Settings) -> Any:
        reason = "there is no such file"
        if Path(settings.delegate).is_file():
            try:
                return load_delegate(settings.delegate, settings.delegate_options)
            except Exception as error:
                reason = text_of(error)
        raise invalid(
            f"model '{self._model}': the library of the parameter 'delegate', '{settings.delegate}', cannot "
            f"be loaded: {reason}; give an absolute path"
        )

    def _allocate(self) -> None:
        try:
            self._interpreter.allocate_tensors()
        except Exception as error:
            raise self._not_opened(error) from error

    def _not_opened(self, error: Exception) -> CoreError:
        text, version = text_of(error), litert_version()
        if _FLEX in text:
            reason = (
                "it uses operators of TensorFlow, which LiteRT does not have; convert it with built-in "
                f"operators only ({text})"
            )
        else:
            reason = f"LiteRT {version} cannot run it; copy or convert it again ({text})"
        return unreadable(self._path, self._model, reason)


def text_of(error: BaseException) -> str:
    """Return the text of an error of LiteRT in one line."""
    return " ".join(str(error).split()) or type(error).__name__


def shaped(array: np.ndarray, port: Port) -> np.ndarray:
    """Return an array with the rank of its port. Elsewhere, dims [1] stand for no dims."""
    rank = len(port.dims)
    return array if array.ndim == rank else array.reshape(array.shape[:rank])
