"""Native backends of players.cpp, for tests: built, put into capsules, made into models."""

import ctypes
import os
import shutil
import subprocess
from pathlib import Path

import core

HERE = Path(__file__).parent
INCLUDE = Path(core.__file__).parent / "include"
NAME = b"core.instance"  # a capsule does not copy its name


class Struct(ctypes.Structure):
    """core_instance."""

    _fields_ = [
        ("abi_version", ctypes.c_uint32),
        ("struct_size", ctypes.c_uint32),
        ("flags", ctypes.c_uint64),
        ("self", ctypes.c_void_p),
        ("execute", ctypes.c_void_p),
        ("attach", ctypes.c_void_p),
    ]


def compiler():
    """A C++ compiler; building core has needed one."""
    found = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")
    assert found, "the tests of native backends need a C++ compiler"
    return found


def built_players(folder):
    """players.cpp as a shared library."""
    built = folder / "players.so"
    command = [compiler(), "-std=c++17", "-O1", "-fPIC", "-shared", f"-I{INCLUDE}"]
    subprocess.run([*command, HERE / "players.cpp", "-o", built, "-pthread"], check=True)
    loaded = ctypes.CDLL(str(built))
    loaded.player.restype = ctypes.c_void_p
    loaded.player.argtypes = [ctypes.c_char_p]
    return loaded


def capsule(library, player, change=None, name=NAME):
    """Return the capsule for an instance's `native`; change(struct) may modify it first."""
    address = library.player(player.encode())
    assert address, f"players.cpp has no '{player}'"
    if change is not None:
        change(Struct.from_address(address))
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(address, name, None)


def backend_of(library, player, change=None):
    """A backend that plays so."""

    class Player(core.ModelInstance):
        def open(self):
            self.native = capsule(library, player, change)

    return core.Backend(instance=Player)


def write_model(repository, *, dtype="FP32", dims=(-1,), max_batch_size=8, more=""):
    """A model `example` of input x and output y, of that datatype and those dims.

    max_batch_size   0 for a model without a batch dimension
    more             text that follows in config.pbtxt
    """
    folder = repository / "example" / "1"
    folder.mkdir(parents=True)
    shape = ", ".join(map(str, dims))
    (folder.parent / "config.pbtxt").write_text(
        f'backend: "under_test" max_batch_size: {max_batch_size}\n'
        f'input {{ name: "x" data_type: TYPE_{dtype} dims: [{shape}] }}\n'
        f'output {{ name: "y" data_type: TYPE_{dtype} dims: [{shape}] }}\n'
        "instance_group { kind: KIND_CPU count: 1 }\n" + more
    )
