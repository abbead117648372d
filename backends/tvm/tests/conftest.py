"""Write small modules with and without TVM, and serve them.

Without TVM, only the tests that need none are collected.
"""

import platform
import struct
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest
from backend_tvm import backend
from core_testing.one_model import one_model

WITHOUT = (
    "test_annotations.py",
    "test_devices.py",
    "test_params.py",
    "test_reading.py",
    "test_settings.py",
    "test_without_tvm.py",
)
HAS_TVM = getattr(find_spec("tvm"), "origin", None) is not None
MACHINES = {"x86_64": 62, "aarch64": 183}


def pytest_ignore_collect(collection_path):
    """Leave out what needs TVM, if it is not installed."""
    needs = collection_path.name.startswith("test_") and collection_path.name not in WITHOUT
    return True if needs and not HAS_TVM else None


def text(value):
    return struct.pack("<Q", len(value)) + value.encode()


def library(body, kind=3, machine=None):
    """Return a library of one segment and no sections, which holds `body`."""
    number = MACHINES.get(platform.machine(), 0) if machine is None else machine
    size = 64 + 56 + len(body)
    head = b"\x7fELF\x02\x01\x01" + bytes(9)
    head += struct.pack("<2HI3QI6H", kind, number, 1, 0, 64, 0, 0, 64, 56, 1, 64, 0, 0)
    return head + struct.pack("<2I6Q", 1, 4, 0, 0, 0, size, size, 4096) + body


def executable(functions, contexts=()):
    """Return a Relax executable: a table of functions, and texts for errors.

    functions   name → names of its parameters; None for a function that is only called
    """
    content = struct.pack("<Q", 0xD225DE2F4214151E) + text("0.14")
    content += struct.pack("<Q", len(functions))
    for name, parameters in functions.items():
        content += struct.pack("<I", parameters is not None) + text(name) + bytes(4 * 8)
        content += struct.pack("<Q", len(parameters or ()))
        content += b"".join(map(text, parameters or ()))
    return content + b"".join(map(text, contexts))


def parameter(function, place, name, annotation):
    return (
        f"ErrorContext(fn={function}, loc=param[{place}], param={name}, annotation={annotation}) "
    )


def result(function, annotation):
    return f"ErrorContext(fn={function}, loc=return, annotation={annotation}) "


def params(**arrays):
    """Return the content of a .params file."""
    content = struct.pack("<QQQ", 0xF7E58D4F05049CB7, 0, len(arrays)) + b"".join(map(text, arrays))
    content += struct.pack("<Q", len(arrays))
    for array in arrays.values():
        code = {"i": 0, "u": 1, "f": 2}[array.dtype.kind]
        content += struct.pack("<QQiii", 0xDD5E40F096B4A13F, 0, 1, 0, array.ndim)
        content += struct.pack("<BBH", code, 8 * array.dtype.itemsize, 1)
        content += struct.pack(f"<{array.ndim}q", *array.shape)
        content += struct.pack("<Q", array.nbytes) + array.tobytes()
    return content


@pytest.fixture
def small():
    """Functions that write files without TVM: library, executable, parameter, result, params."""
    return SimpleNamespace(
        library=library, executable=executable, parameter=parameter, result=result, params=params
    )


@pytest.fixture
def version(tmp_path):
    """A version's folder: main(x FP32[rows, 3], w FP32[3, 2]) → FP32[rows, 2], with w in model.params."""
    contexts = [
        parameter("main", 0, "x", 'R.Tensor((rows, 3), dtype="float32")'),
        parameter("main", 1, "w", 'R.Tensor((3, 2), dtype="float32")'),
        result("main", 'R.Tensor((rows, T.int64(2)), dtype="float32")'),
    ]
    body = executable({"main": ["x", "w"], "matmul": None}, contexts)
    (tmp_path / "model.so").write_bytes(library(body))
    (tmp_path / "model.params").write_bytes(params(w=np.ones((3, 2), np.float32)))
    return tmp_path


@pytest.fixture
def serve(tmp_path):
    """serve(fill, config=None, settings=None, **options): serve a model named m (core_testing.one_model)."""
    with one_model(backend, "tvm", tmp_path) as start:
        yield start
