"""Copies between the host and GPUs, by an array library of the program."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from core.devices import dlpack
from tritonserver._api._enums import MemoryType
from tritonserver._api._errors import UnsupportedError


def moved(source: Any, place: tuple[MemoryType, int]) -> Any:
    """Return a copy of a UINT8 array in memory of another kind, complete on return.

    source   an object with `__dlpack__`, on the host or on a CUDA device
    Raises UnsupportedError if a GPU is involved and neither CuPy nor PyTorch is installed.
    """
    kind, number = place
    on_gpu = int(source.__dlpack_device__()[0]) == dlpack.CUDA
    if not on_gpu and kind is not MemoryType.GPU:
        return np.array(dlpack.host_view(source.__dlpack__()))
    if (cupy := _installed("cupy")) is not None:
        array = cupy.from_dlpack(source) if on_gpu else dlpack.host_view(source.__dlpack__())
        if kind is not MemoryType.GPU:
            return cupy.asnumpy(array)
        with cupy.cuda.Device(number):
            copy = cupy.array(array)
            cupy.cuda.get_current_stream().synchronize()
        return copy
    if (torch := _installed("torch")) is not None:
        target = f"cuda:{number}" if kind is MemoryType.GPU else "cpu"
        try:
            copy = torch.from_dlpack(source).to(target, copy=True)
            torch.cuda.synchronize()
        except (RuntimeError, AssertionError) as error:  # a build of PyTorch without CUDA, no GPU
            raise UnsupportedError(f"PyTorch cannot copy a tensor to {target}: {error}") from error
        return copy
    raise UnsupportedError(
        f"a copy to {kind.name}:{number} needs CuPy or PyTorch; install one of them in the program's "
        "environment"
    )


def written_to(target: Any, array: Any) -> None:
    """Write an array of a GPU into memory of the same GPU, complete on return.

    array   what `moved` has returned: of CuPy or PyTorch
    """
    library = importlib.import_module(type(array).__module__.partition(".")[0])
    if library.__name__ == "cupy":
        library.from_dlpack(target)[...] = array
        library.cuda.get_current_stream().synchronize()
    else:
        library.from_dlpack(target).copy_(array)
        library.cuda.synchronize()


def _installed(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
