"""Load a compiled module, and run its function: arrays ─► tensors of TVM ─► virtual machine ─► arrays.

reading, framework ─► [machine] ─► instance, results.
"""

from __future__ import annotations

import importlib
import shutil
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from backend_tvm.framework import import_tvm
from backend_tvm.reading import ReadModel, unreadable
from backend_tvm.settings import Settings
from core.errors import invalid

_ALIGNMENT = 64  # bytes: compiled code reads whole vectors
_DEVICES = {"cuda": "cuda", "hip": "rocm"}  # kind of a module inside → TVM's name of its devices
_this_thread = threading.local()


class LoadedModule:
    """The library of one version in memory, and its weights on each device. Thread-safe."""

    def __init__(self, read: ReadModel, model: str) -> None:
        """Raises CoreError: INTERNAL if TVM cannot load the library, INVALID if there is no TVM."""
        self._read, self._model = read, model
        self._tvm = import_tvm(model)
        self._vm: Any = importlib.import_module("tvm.runtime.vm")
        self._module: Any = self._load()
        self._weights: dict[tuple[str, int], dict[str, Any]] = {}
        self._placing = threading.Lock()

    def machine(self, kind: str, number: int, settings: Settings) -> Machine:
        """Return a virtual machine on a device. Its runs must not overlap.

        kind, number   of the device in instance_group: "CPU", 0
        Raises CoreError: INVALID if the module is not for such a device, INTERNAL if TVM refuses it.
        """
        device = self._device(kind, number)
        try:
            machine = self._vm.VirtualMachine(self._module, device, settings.allocator)
            function = machine[self._read.function]
            with self._placing:
                weights = self._weights_on(device, kind, number)
        except Exception as error:
            raise unreadable(self._read.library, self._model, text_of(error)) from error
        arguments = [weights.get(name) for name in self._read.parameters]
        return Machine(self._tvm, function, arguments, device, kind == "CPU", settings.threads)

    def close(self) -> None:
        """Drop the library; machines keep it until they are gone."""
        self._module = None
        self._weights = {}

    def _load(self) -> Any:
        """Load a copy with a name of its own: the linker would take a replaced file for the old one."""
        ffi: Any = importlib.import_module("tvm_ffi")
        try:
            with tempfile.TemporaryDirectory(prefix="core-tvm-") as folder:
                copy = Path(folder) / self._read.library.name
                shutil.copyfile(self._read.library, copy)
                # TVM would keep the library in memory until the process ends.
                return ffi.load_module(str(copy), keep_module_alive=False)
        except Exception as error:
            raise unreadable(
                self._read.library,
                self._model,
                f"TVM {self._tvm.__version__} says: {text_of(error)}; compile it with this version, or see "
                "whether the folder for temporary files (TMPDIR) may have programs",
            ) from error

    def _device(self, kind: str, number: int) -> Any:
        inside = _kinds(self._module)
        devices = sorted(_DEVICES[each] for each in inside if each in _DEVICES)
        compiled = f"for {', '.join(devices)}" if devices else "for CPUs"
        if (kind == "GPU") != bool(devices):
            raise invalid(
                f"model '{self._model}': '{self._read.library}' was compiled {compiled}, the instance has "
                f"KIND_{kind}; compile it for that, or write instance_group [{{ kind: "
                f"KIND_{'GPU' if devices else 'CPU'} }}] into config.pbtxt"
            )
        device = self._tvm.device(devices[0] if devices else "cpu", number if devices else 0)
        if not device.exist:
            raise invalid(
                f"model '{self._model}': TVM finds no device {devices[0]} {number} here; change "
                "instance_group in config.pbtxt"
            )
        return device

    def _weights_on(self, device: Any, kind: str, number: int) -> dict[str, Any]:
        key = kind, number
        if key not in self._weights:
            self._weights[key] = {
                name: self._tvm.runtime.tensor(np.array(array), device=device)
                for name, array in self._read.weights.items()
            }
        return self._weights[key]


class Machine:
    """One virtual machine. Not thread-safe: its runs must not overlap."""

    def __init__(
        self,
        tvm: Any,
        function: Any,
        arguments: Sequence[Any],
        device: Any,
        on_cpu: bool,
        threads: int,
    ) -> None:
        """arguments   weights, and None where an input belongs"""
        self._tensor = tvm.runtime.tensor
        ffi: Any = importlib.import_module("tvm_ffi")
        self._from_dlpack = ffi.from_dlpack
        self._set_threads = ffi.get_global_func("runtime.config_threadpool")
        self._function, self._arguments = function, list(arguments)
        self._places = [place for place, each in enumerate(arguments) if each is None]
        self._device, self._on_cpu, self._threads = device, on_cpu, threads

    def run(self, arrays: Sequence[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
        """Return the results in memory of their own: a function may return an input, a constant or weights.

        The GIL is released meanwhile. Raises the errors of TVM.
        """
        self._size_pool()
        arguments = self._arguments[:]
        for place, array in zip(self._places, arrays, strict=True):
            if self._on_cpu:
                arguments[place] = self._from_dlpack(aligned(array))
            else:
                arguments[place] = self._tensor(np.ascontiguousarray(array), device=self._device)
        results = _flat(self._function(*arguments))
        if not self._on_cpu:
            return [each.numpy() for each in results]
        return [np.from_dlpack(each).copy() for each in results]

    def _size_pool(self) -> None:
        """Set the number of threads of TVM's pool, of which each thread of the process has its own."""
        if self._threads and getattr(_this_thread, "size", 0) != self._threads:
            self._set_threads(1, self._threads)
            _this_thread.size = self._threads


def aligned(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the array, or a copy, as compiled code takes it: aligned, in C order, writable."""
    if array.flags.carray and not array.ctypes.data % _ALIGNMENT:
        return array
    memory = np.empty(array.nbytes + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    copy: np.ndarray[Any, Any] = np.ndarray(array.shape, array.dtype, memory, start)
    copy[...] = array
    return copy


def text_of(error: BaseException) -> str:
    """Return the text of an error of TVM in one line, without the trace of its C++ code."""
    text = str(error).partition("\nStack trace")[0]
    return " ".join(text.split())[:1000] or type(error).__name__


def _flat(result: Any) -> list[Any]:
    """Return the tensors of a result, those in tuples in order. Raises TypeError for anything else."""
    if hasattr(result, "__dlpack__"):
        return [result]
    if hasattr(result, "__len__") and not isinstance(result, str):
        return [each for part in result for each in _flat(part)]
    raise TypeError(f"the function returns {type(result).__name__}; it must return tensors")


def _kinds(module: Any) -> set[str]:
    """Return the kinds of a module and of those inside."""
    return {str(module.kind)}.union(*map(_kinds, module.imports))
