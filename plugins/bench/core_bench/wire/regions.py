"""Regions: shared memory of this process for inputs and outputs, registered at the server."""

from __future__ import annotations

import itertools
import math
import mmap
import os
from collections.abc import Sequence

from core.errors import CoreError, invalid
from core_bench.data.json_file import Step
from core_bench.data.tensors import dtype_of
from core_bench.model.control import Control
from core_bench.model.description import ModelInfo

_NUMBERS = itertools.count()


class Regions:
    """Two regions of system shared memory.

    Requests that are the same share the place of their outputs: their answers overwrite each other.

    inputs    offset and size of each input of each request
    outputs   the same of each output
    Raises CoreError if the server refuses them; nothing is left then.
    """

    def __init__(
        self,
        control: Control,
        info: ModelInfo,
        requests: Sequence[Step],
        batch: int,
        unknown_bytes: int,
    ):
        name = f"core_bench_{os.getpid()}_{next(_NUMBERS)}"
        self.input_region, self.output_region = f"{name}_in", f"{name}_out"
        self.inputs: list[dict[str, tuple[int, int]]] = []
        self.outputs: list[dict[str, tuple[int, int]]] = []
        self._control = control
        self._registered: list[str] = []
        data = bytearray()
        total = 0
        for step in requests:
            self.inputs.append({})
            for key, value in step.items():
                self.inputs[-1][key] = (len(data), len(value.raw))
                data += value.raw
            self.outputs.append({})
            for output in info.outputs:
                rows = batch if info.max_batch_size else 1
                size = rows * unknown_bytes
                if output.datatype != "BYTES" and -1 not in output.dims:
                    size = rows * math.prod(output.dims) * dtype_of(output.datatype).itemsize
                self.outputs[-1][output.name] = (total, size)
                total += size
        try:
            self._make(self.input_region, bytes(data))
            self._make(self.output_region, bytes(max(total, 1)))
        except BaseException:
            self.close()
            raise

    def _make(self, name: str, data: bytes) -> None:
        path = f"/dev/shm/{name}"
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as error:
            raise invalid(f"cannot make shared memory in {path}: {error.strerror}") from None
        try:
            os.ftruncate(file, max(len(data), 1))
            with mmap.mmap(file, max(len(data), 1)) as memory:
                memory[: len(data)] = data
        finally:
            os.close(file)
        self._registered.append(name)
        self._control.register(name, f"/{name}", max(len(data), 1))

    def close(self) -> None:
        """Unregister and remove the regions; a server that is gone is no error."""
        for name in self._registered:
            try:
                self._control.unregister(name)
            except CoreError:
                pass  # it has never known the region, or has ended
            os.unlink(f"/dev/shm/{name}")
        self._registered.clear()
