"""GPU memory that the server and a child process lend to each other, by handles of CUDA IPC.

    sender    place ─► Lender.lend ─► LOAN, in the region of a message ─► Borrower.take ─► Loan ─► address
              Lender.returned ◄─ its number, among the released regions of any later message ◄─ Loan is gone

The lender keeps the memory until the loan is returned or the other process ends. Only these two processes
exchange handles; a client never sends one.
"""

from __future__ import annotations

import contextlib
import queue
import struct
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from backend_python.api import cuda
from backend_python.api.errors import TritonModelException
from backend_python.protocol import LOANS, ProtocolError

# Handle of the allocation, UUID of the device, number of the loan, offset of the tensor in the allocation,
# bytes of the allocation.
LOAN = struct.Struct("<64s16sQQQ")


class Place(NamedTuple):
    """The location of a tensor in GPU memory, valid in every process.

    handle   CUDA IPC handle of the allocation
    device   UUID of the device
    offset   of the tensor in the allocation, bytes
    size     of the allocation, bytes
    base     address of the allocation if this process made it, else 0
    """

    handle: bytes
    device: bytes
    offset: int
    size: int
    base: int = 0


class _Allocation:
    """An allocation of another process that is open here, or one of this process that is lent."""

    __slots__ = ("address", "device", "size", "users", "uuid")

    def __init__(self, address: int, size: int, device: int, uuid: bytes):
        self.address = address
        self.size = size
        self.device = device
        self.uuid = uuid
        self.users = 0


class _Known:
    """The allocations that are open here, and those of this process that are lent, by handle. Thread-safe.

    CUDA cannot open a handle in the process that made it, so `open` returns memory of this process from the
    record of lent allocations. CUDA makes no handle for memory that was opened by a handle, so `place`
    returns such memory with the handle by which it was opened.
    """

    def __init__(self) -> None:
        # Reentrant: the garbage collector may close an allocation while another is opened.
        self._lock = threading.RLock()
        self._opened: dict[bytes, _Allocation] = {}
        self._lent: dict[bytes, _Allocation] = {}

    def place(self, address: int, size: int, device: int) -> Place | None:
        """Return the location of `size` bytes at `address`; None if other processes cannot open them."""
        with self._lock:
            for handle, known in self._opened.items():
                offset = address - known.address
                if known.device == device and offset >= 0 and offset + size <= known.size:
                    return Place(handle, known.uuid, offset, known.size)
        found = cuda.shareable(address, size, device)
        if found is None:
            return None
        offset = address - found.address
        return Place(found.handle, cuda.devices()[device], offset, found.size, found.address)

    def lend(self, place: Place) -> None:
        """Count one more loan of the allocation; do nothing if another process made it."""
        if not place.base:
            return  # memory of another process
        with self._lock:
            lent = self._lent.get(place.handle)
            if lent is None:
                device = number_of(place.device)
                lent = _Allocation(place.base, place.size, device, place.device)
                self._lent[place.handle] = lent
            lent.users += 1

    def returned(self, place: Place) -> None:
        """Count one loan less of the allocation; do nothing if another process made it."""
        if not place.base:
            return
        with self._lock:
            lent = self._lent[place.handle]
            lent.users -= 1
            if not lent.users:
                del self._lent[place.handle]

    def open(self, handle: bytes, uuid: bytes) -> _Allocation:
        """Return the allocation of a handle, and open it if necessary. Call `close` once for each `open`.

        Raises TritonModelException if the handle cannot be opened.
        """
        with self._lock:
            if (lent := self._lent.get(handle)) is not None:
                return lent
            found = self._opened.get(handle)
            if found is None:
                device = number_of(uuid)
                address, size = cuda.open_handle(handle, device)
                found = self._opened[handle] = _Allocation(address, size, device, uuid)
            found.users += 1
            # The garbage collector may close it between these lines.
            return found if self._opened.get(handle) is found else self.open(handle, uuid)

    def close(self, handle: bytes, opened: _Allocation) -> None:
        with self._lock:
            if self._opened.get(handle) is not opened:
                return  # an allocation of this process
            opened.users -= 1
            if not opened.users:
                del self._opened[handle]
                # The driver fails if the process ends or its GPU is lost.
                with contextlib.suppress(TritonModelException):
                    cuda.close_handle(opened.address, opened.device)

    @property
    def counts(self) -> tuple[int, int]:
        """The number of open allocations, and of lent ones."""
        return len(self._opened), len(self._lent)


known = _Known()


def number_of(uuid: bytes) -> int:
    """Return the number of a device in this process. Raises TritonModelException if it does not see it."""
    with contextlib.suppress(ValueError):
        return cuda.devices().index(uuid)
    raise TritonModelException(
        f"GPU tensor cannot be used: it is on the GPU with UUID {uuid.hex()}, which this process does not see"
    )


_closed_to_others: set[int] = set()  # devices without interprocess communication


class Staged:
    """A copy of a tensor in memory that CUDA has allocated. The memory is freed with this object."""

    def __init__(self, address: int, size: int, device: int):
        self.address = cuda.allocate(size, device)
        self._device = device
        cuda.copy(self.address, address, size, device)

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError, TritonModelException):
            cuda.free(self.address, self._device)


def lendable(
    address: int, size: int, device: int, keeps: Any, say: Callable[[str], None]
) -> tuple[Place, Any] | None:
    """Return a location that other processes can open, and the object that keeps its memory alive.

    If they cannot open the tensor's own memory, this copies the tensor to new memory on the same device.
    Returns None if they cannot open that either. Thread-safe. The work on the tensor must be complete.

    keeps   object that keeps the memory at `address` alive
    say     logs a text, which says why the tensor is copied
    """
    place = known.place(address, size, device)
    if place is not None:
        return place, keeps
    if device in _closed_to_others:
        return None
    reason = "other processes can open no memory there"
    try:
        staged = Staged(address, size, device)
        place = known.place(staged.address, size, device)
        if place is None:
            _closed_to_others.add(device)
    except TritonModelException as error:  # no memory is left
        reason = str(error)
    if place is None:
        say(f"tensors on GPU {device} go from process to process by way of host memory: {reason}")
        return None
    say(
        f"tensors on GPU {device} are copied there before another process gets them: they lie in memory that "
        "others cannot open (of a pool of CUDA, managed, or of expandable segments)"
    )
    return place, staged


class Lender:
    """The loans that this process has given to the other one. Any thread."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # reentrant: the destructor of a kept object may lend
        self._lent: dict[int, tuple[Place, Any]] = {}
        self._number = 0
        self._closed = False

    def lend(self, place: Place, keeps: Any) -> tuple[int, bytes]:
        """Return the number and the packed LOAN of a tensor. Hold `keeps` until `returned` or `close`."""
        with self._lock:
            self._number += 1
            number = self._number | LOANS
            if not self._closed:
                known.lend(place)
                self._lent[number] = place, keeps
        return number, LOAN.pack(place.handle, place.device, number, place.offset, place.size)

    def returned(self, number: int) -> None:
        """End a loan that the other process returns. After `close`, do nothing.

        Raises ProtocolError if there is no such loan.
        """
        with self._lock:
            lent = self._lent.pop(number, None)
        if lent is None:
            if self._closed:
                return  # `close` has ended the loan
            raise ProtocolError(f"loan {number - LOANS} came back, but is not lent")
        known.returned(lent[0])

    def close(self) -> None:
        """End all loans to the other process, because it has ended. `lend` then holds nothing any more."""
        with self._lock:
            self._closed = True
            lent, self._lent = self._lent, {}
        for place, _ in lent.values():
            known.returned(place)

    def __len__(self) -> int:
        return len(self._lent)


class Borrower:
    """The loans that this process has from the other one. Any thread.

    returned   receives the numbers of ended loans, which the next message returns with released regions
    settles    True if a loan that was opened ends only when all work of its device is complete
    came_back  called after a number is added to `returned`; any thread, also in destructors: must not block
    lost       description of the other process, set when it has ended; "" before
    """

    def __init__(
        self, returned: deque[int], settles: bool, came_back: Callable[[], None] = lambda: None
    ):
        self.came_back = came_back
        self.settles = settles
        self._returned = returned
        self._out: set[int] = set()
        self.lost = ""
        # Not a Condition: destructors put into it.
        self._fewer: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._awaited = False

    def take(self, data: Any) -> Loan:
        """Return the loan of a packed LOAN. Raises ProtocolError if its number or offset is invalid."""
        handle, device, number, offset, size = LOAN.unpack(data)
        if not number & LOANS or offset > size or number in self._out:
            raise ProtocolError(f"loan {number - LOANS} of {size} bytes from {offset} on")
        self._out.add(number)
        return Loan(self, Place(handle, device, offset, size), number)

    def wait_returned(self, timeout_s: float) -> bool:
        """Wait until all loans have ended. Return False if one has not after `timeout_s` seconds."""
        self._awaited = True
        end = time.monotonic() + timeout_s
        while self._out:
            try:
                self._fewer.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                return not self._out
        return True

    def gave_back(self, number: int) -> None:
        """Record the end of a loan. Unless the other process has ended, add the number to `returned`."""
        self._out.discard(number)
        if self._awaited:
            self._fewer.put(None)
        if not self.lost:
            self._returned.append(number)
            self.came_back()

    def __len__(self) -> int:
        return len(self._out)


class Loan:
    """The lent memory of a tensor. When this object is destroyed, the loan ends. Thread-safe."""

    __slots__ = ("_borrower", "_number", "_opened", "place")

    def __init__(self, borrower: Borrower, place: Place, number: int):
        self.place = place
        self._borrower = borrower
        self._number = number
        self._opened: _Allocation | None = None

    def check(self) -> None:
        """Raise TritonModelException if the process that lends the memory has ended."""
        if self._borrower.lost:
            raise TritonModelException(
                f"GPU tensor cannot be used: it is in the memory of {self._borrower.lost}"
            )

    @property
    def device(self) -> int:
        """The device's number in this process. Raises TritonModelException if the process does not see it."""
        return number_of(self.place.device)

    def address(self) -> int:
        """Open the memory and return the address of the tensor. Raises TritonModelException if that fails."""
        self.check()
        if self._opened is None:
            place = self.place
            opened = known.open(place.handle, place.device)
            if self._opened is None:
                self._opened = opened
            else:  # another thread opened it first
                known.close(place.handle, opened)
            if place.size > self._opened.size:
                raise TritonModelException(
                    f"GPU tensor cannot be used: its allocation has {self._opened.size} bytes, and not "
                    f"{place.size}"
                )
        return self._opened.address + self.place.offset

    def __del__(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            if self._borrower.settles:
                with contextlib.suppress(TritonModelException):
                    cuda.wait(opened.device)
            known.close(self.place.handle, opened)
        self._borrower.gave_back(self._number)
