"""Memory of GPUs that the server and a child lend one another, by handles of CUDA IPC.

    sender    place ─► Lender.lend ─► LOAN, in the region of a message ─► Borrower.take ─► Loan ─► address
              Lender.returned ◄─ its number, among the released regions of any later message ◄─ Loan is gone

Who lends keeps the memory until the loan comes back, or the other side has ended. Only these two exchange
handles: none of them comes from a client.
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

# Handle of the allocation, UUID of the device, number of the loan, where in the allocation the tensor begins,
# bytes of the allocation.
LOAN = struct.Struct("<64s16sQQQ")


class Place(NamedTuple):
    """Where a tensor is, as other processes understand it.

    handle   of the allocation
    device   UUID
    offset   of the tensor in the allocation
    size     of the allocation, bytes
    base     its address, if this process has made it
    """

    handle: bytes
    device: bytes
    offset: int
    size: int
    base: int = 0


class _Allocation:
    """One that other processes have made and that is open here, or one of this process that is lent."""

    __slots__ = ("address", "device", "size", "users", "uuid")

    def __init__(self, address: int, size: int, device: int, uuid: bytes):
        self.address = address
        self.size = size
        self.device = device
        self.uuid = uuid
        self.users = 0


class _Known:
    """The allocations that are open here, and those of this process that are lent, by handles. Any thread.

    CUDA opens no handle in the process that made it, and makes none of memory that was opened by one: what
    comes back is found here, and what is handed on goes by the handle that it came by.
    """

    def __init__(self) -> None:
        # Reentrant: a tensor may be collected, and let go, while another is opened.
        self._lock = threading.RLock()
        self._opened: dict[bytes, _Allocation] = {}
        self._lent: dict[bytes, _Allocation] = {}

    def place(self, address: int, size: int, device: int) -> Place | None:
        """Where `size` bytes from `address` on are; None if other processes cannot open that memory."""
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
        """One more has it."""
        if not place.base:
            return  # of another process, which it is handed on from
        with self._lock:
            lent = self._lent.get(place.handle)
            if lent is None:
                device = number_of(place.device)
                lent = _Allocation(place.base, place.size, device, place.device)
                self._lent[place.handle] = lent
            lent.users += 1

    def returned(self, place: Place) -> None:
        """One less has it."""
        if not place.base:
            return
        with self._lock:
            lent = self._lent[place.handle]
            lent.users -= 1
            if not lent.users:
                del self._lent[place.handle]

    def open(self, handle: bytes, uuid: bytes) -> _Allocation:
        """The allocation, to be closed by who has opened it. TritonModelException if it cannot be opened."""
        with self._lock:
            if (lent := self._lent.get(handle)) is not None:
                return lent
            found = self._opened.get(handle)
            if found is None:
                device = number_of(uuid)
                address, size = cuda.open_handle(handle, device)
                found = self._opened[handle] = _Allocation(address, size, device, uuid)
            found.users += 1
            # Should its last user be collected between these lines, it is closed.
            return found if self._opened.get(handle) is found else self.open(handle, uuid)

    def close(self, handle: bytes, opened: _Allocation) -> None:
        with self._lock:
            if self._opened.get(handle) is not opened:
                return  # one of this process
            opened.users -= 1
            if not opened.users:
                del self._opened[handle]
                # It raises where the process ends, or its GPU is lost.
                with contextlib.suppress(TritonModelException):
                    cuda.close_handle(opened.address, opened.device)

    @property
    def counts(self) -> tuple[int, int]:
        """How many are open, and how many are lent."""
        return len(self._opened), len(self._lent)


known = _Known()


def number_of(uuid: bytes) -> int:
    """The number of a device in this process. TritonModelException if it does not see the device."""
    with contextlib.suppress(ValueError):
        return cuda.devices().index(uuid)
    raise TritonModelException(
        f"GPU tensor cannot be used: it is on the GPU with UUID {uuid.hex()}, which this process does not see"
    )


_closed_to_others: set[int] = set()  # devices without interprocess communication


class Staged:
    """A copy of a tensor in memory of our own, which other processes can open; freed with this object."""

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
    """Where a tensor is that the other side is to have, and what keeps the memory there.

    keeps   keeps the memory at `address`
    say     told when a copy is needed
    None if it can only go by way of the host. Any thread; what makes the tensor has ended.
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
    """What one side has lent. Any thread."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # reentrant: what is kept may lend when it goes
        self._lent: dict[int, tuple[Place, Any]] = {}
        self._number = 0
        self._closed = False

    def lend(self, place: Place, keeps: Any) -> tuple[int, bytes]:
        """Number and LOAN of a tensor; `keeps` keeps its memory until that comes back."""
        with self._lock:
            self._number += 1
            number = self._number | LOANS
            if not self._closed:
                known.lend(place)
                self._lent[number] = place, keeps
        return number, LOAN.pack(place.handle, place.device, number, place.offset, place.size)

    def returned(self, number: int) -> None:
        """The other side has let go. ProtocolError for what it does not have."""
        with self._lock:
            lent = self._lent.pop(number, None)
        if lent is None:
            if self._closed:
                return  # and so has this one
            raise ProtocolError(f"loan {number - LOANS} came back, but is not lent")
        known.returned(lent[0])

    def close(self) -> None:
        """The other side has ended: nobody has anything any more."""
        with self._lock:
            self._closed = True
            lent, self._lent = self._lent, {}
        for place, _ in lent.values():
            known.returned(place)

    def __len__(self) -> int:
        return len(self._lent)


class Borrower:
    """What one side has of the other. Any thread.

    returned   where numbers of loans go that are to be told to the other side, with its regions
    settles    whether the device's work on what was opened is waited for before it goes back
    came_back  called when there is one more, from any thread and within destructors: it waits for nothing
    lost       why nothing of it is to be used any more, set when the other side has ended; "" before
    """

    def __init__(
        self, returned: deque[int], settles: bool, came_back: Callable[[], None] = lambda: None
    ):
        self.came_back = came_back
        self.settles = settles
        self._returned = returned
        self._out: set[int] = set()
        self.lost = ""
        # For destructors, so no Condition.
        self._fewer: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._awaited = False

    def take(self, told: Any) -> Loan:
        """The loan of a LOAN. ProtocolError for one whose tensor is not within its allocation."""
        handle, device, number, offset, size = LOAN.unpack(told)
        if not number & LOANS or offset > size or number in self._out:
            raise ProtocolError(f"loan {number - LOANS} of {size} bytes from {offset} on")
        self._out.add(number)
        return Loan(self, Place(handle, device, offset, size), number)

    def wait_returned(self, timeout_s: float) -> bool:
        """Wait until nothing is borrowed any more. False if something still is."""
        self._awaited = True
        end = time.monotonic() + timeout_s
        while self._out:
            try:
                self._fewer.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                return not self._out
        return True

    def gave_back(self, number: int) -> None:
        """A loan is gone."""
        self._out.discard(number)
        if self._awaited:
            self._fewer.put(None)
        if not self.lost:
            self._returned.append(number)
            self.came_back()

    def __len__(self) -> int:
        return len(self._out)


class Loan:
    """A tensor's memory, as long as somebody holds this; then it goes back. Any thread."""

    __slots__ = ("_borrower", "_number", "_opened", "place")

    def __init__(self, borrower: Borrower, place: Place, number: int):
        self.place = place
        self._borrower = borrower
        self._number = number
        self._opened: _Allocation | None = None

    def check(self) -> None:
        """TritonModelException if the process that has made it has ended."""
        if self._borrower.lost:
            raise TritonModelException(
                f"GPU tensor cannot be used: it is in the memory of {self._borrower.lost}"
            )

    @property
    def device(self) -> int:
        """Its number in this process. TritonModelException if it does not see the device."""
        return number_of(self.place.device)

    def address(self) -> int:
        """Of its first byte, in this process. TritonModelException if it cannot be opened."""
        self.check()
        if self._opened is None:
            place = self.place
            opened = known.open(place.handle, place.device)
            if self._opened is None:
                self._opened = opened
            else:  # two threads asked
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
