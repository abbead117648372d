"""A GPU for tests on machines without one. Its memory are files without names, which processes really share
by "handles". It replaces `api/cuda.py`: in the server by `monkeypatch`, in a child because its model does
so.

Its calls are written to the file that PLAYED_GPU_LOG names, a line for each: process id, call.
"""

import contextlib
import mmap
import os

import numpy as np
from backend_python.api import cuda, dlpack, tensor
from backend_python.api.errors import TritonModelException

UUIDS = (b"first played GPU", b"other played GPU")
SIZE = 1 << 16  # of an allocation, as a library's that cuts its tensors from larger ones

_made = {}  # address → (mapping, file descriptor or None, keeps it mapped)
_opened = {}


def note(what):
    if (path := os.environ.get("PLAYED_GPU_LOG")) is None:
        return  # behind a test
    with open(path, "ab", buffering=0) as log:
        log.write(f"{os.getpid()} {what}\n".encode())


def memory(size, *, shareable=True):
    """Return the address of `size` bytes of new memory; other processes can open it if it is shareable."""
    fd = os.memfd_create("gpu")
    os.ftruncate(fd, size)
    mapping = mmap.mmap(fd, size)
    view = np.frombuffer(mapping, np.uint8)
    address = view.__array_interface__["data"][0]
    if not shareable:
        os.close(fd)
        fd = None
    _made[address] = mapping, fd, view
    return address


def release(address):
    _, fd, _ = _made.pop(address)
    if fd is not None:
        os.close(fd)


class Memory:
    """An allocation that is freed with its last reference."""

    def __init__(self, shareable=True):
        self.address = memory(SIZE, shareable=shareable)

    def __del__(self):
        note("freed")
        release(self.address)


def bytes_at(address, size):
    for base, (mapping, _, view) in (*_made.items(), *_opened.items()):
        if base <= address and address + size <= base + len(mapping):
            return view[address - base : address - base + size]
    raise TritonModelException(f"played GPU: nothing is at {address}")


def devices():
    return UUIDS


def copy_to_host(address, size, device):
    if size:
        note("to host")
        return bytes_at(address, size).copy()
    return np.empty(0, np.uint8)


def wait(device):
    note("wait")


def shareable(address, size, device):
    for base, (mapping, fd, _) in _made.items():
        if fd is not None and base <= address < base + len(mapping):
            handle = f"{os.getpid()} {fd}".encode().ljust(cuda.HANDLE_BYTES, b"\0")
            return cuda.Shareable(handle, base, len(mapping))
    return None


def open_handle(handle, device):
    pid, fd = handle.rstrip(b"\0").split()
    assert int(pid) != os.getpid(), "CUDA opens no handle in the process that made it"
    try:
        theirs = os.open(f"/proc/{int(pid)}/fd/{int(fd)}", os.O_RDWR)
    except OSError as error:
        raise TritonModelException(f"played GPU: {error}") from None
    mapping = mmap.mmap(theirs, os.fstat(theirs).st_size)
    os.close(theirs)
    view = np.frombuffer(mapping, np.uint8)
    address = view.__array_interface__["data"][0]
    _opened[address] = mapping, None, view
    note("opened")
    return address, len(mapping)


def close_handle(address, device):
    del _opened[address]
    note("closed")


def allocate(size, device):
    note("allocated")
    return memory(size)


def free(address, device):
    release(address)
    note("freed")


def copy(target, source, size, device):
    note("copied there")
    bytes_at(target, size)[:] = bytes_at(source, size)


@contextlib.contextmanager
def current(device):
    yield


def install(put=setattr):
    """Put the functions of this module in the place of those that call CUDA's driver."""
    names = (
        "devices copy_to_host wait shareable open_handle close_handle allocate free copy current"
    )
    for name in names.split():
        put(cuda, name, globals()[name])


def array(values, *, shareable=True, offset=256):
    """Return a DLPack capsule of these values on the played GPU, `offset` bytes into an allocation."""
    values = np.ascontiguousarray(values)
    owner = Memory(shareable)
    address = owner.address + offset
    bytes_at(address, values.nbytes)[:] = values.reshape(-1).view(np.uint8)
    steps = tuple(step // values.itemsize for step in values.strides)
    return dlpack.lend(address, values.shape, steps, 11, (dlpack.CUDA, 0), owner)


def on_gpu(name, values, **how):
    """Return a model's Tensor with these values on the played GPU."""
    return tensor.Tensor.from_dlpack(name, array(values, **how))


def look(found):
    """Return the FP32 values of a model's tensor, on the host or on the played GPU."""
    if found.is_cpu():
        return found.as_numpy()
    borrowed = dlpack.borrow(found.to_dlpack())
    return borrowed.array().copy()
