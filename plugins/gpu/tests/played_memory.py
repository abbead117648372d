"""Memory of a machine that a test makes up: the functions of libcuda that allocate it.

Memory of GPUs is memory of the host here, so that a test can read and write it.
"""

import ctypes
from ctypes import c_size_t, c_uint64, c_void_p

import numpy as np

OUT_OF_MEMORY, INVALID_VALUE = 2, 1
GRAIN = 4096


class PlayedMemory:
    """Part of PlayedCuda. `room`: bytes of each GPU that can still be allocated.

    blocks   address → array, of what is allocated and not freed
    ranges   address → (array, number of the GPU), of addresses that are reserved
    mapped   address → size, of the parts of ranges that have memory
    handles  handle → size, until it is released
    """

    def __init__(self):
        self.room = 1 << 30
        self.blocks, self.ranges, self.mapped, self.handles = {}, {}, {}, {}
        self.open = set()  # addresses of mapped memory that GPUs may access
        self.sizes = []  # of all blocks until now
        self._used = set()  # handles that are mapped

    def _new(self, found, size):
        assert self.stack, "no current context"
        assert isinstance(size, c_size_t)
        if size.value > self.room:
            return OUT_OF_MEMORY
        array = np.zeros(size.value, np.uint8)
        found._obj.value = array.ctypes.data
        self.blocks[found._obj.value] = array
        self.sizes.append(array.size)
        self.room -= size.value
        return 0

    def _end(self, address, kind):
        assert self.stack and isinstance(address, kind)
        self.room += self.blocks.pop(address.value).size

    def _cuMemHostAlloc(self, found, size, flags):
        assert flags == 1, "all contexts use it"
        return self._new(found, size)

    def _cuMemFreeHost(self, address):
        return self._end(address, c_void_p)

    def _cuMemAlloc_v2(self, found, size):
        assert isinstance(found._obj, c_uint64)
        return self._new(found, size)

    def _cuMemFree_v2(self, address):
        return self._end(address, c_uint64)

    # virtual memory --------------------------------------------------------------------------

    def _cuMemGetAllocationGranularity(self, found, properties, option):
        assert option == 0 and ctypes.sizeof(properties._obj) == 32
        found._obj.value = GRAIN

    def _cuMemAddressReserve(self, found, size, alignment, address, flags):
        assert alignment.value == address.value == flags.value == 0
        assert size.value % GRAIN == 0
        array = np.zeros(size.value, np.uint8)
        found._obj.value = array.ctypes.data
        self.ranges[found._obj.value] = array, self.stack[-1].number

    def _cuMemAddressFree(self, address, size):
        array, _ = self.ranges.pop(address.value)
        assert array.size == size.value
        assert not [each for each in self.mapped if 0 <= each - address.value < size.value]

    def _cuMemCreate(self, handle, size, properties, flags):
        given = properties._obj
        assert (given.type, given.location.type, given.handle_types) == (1, 1, 0)
        assert size.value % GRAIN == 0 and given.location.id == self.stack[-1].number
        if size.value > self.room:
            return OUT_OF_MEMORY
        self.room -= size.value
        handle._obj.value = 1 + max(self.handles, default=0)
        self.handles[handle._obj.value] = size.value
        return 0

    def _cuMemMap(self, address, size, offset, handle, flags):
        (start,) = [each for each in self.ranges if each <= address.value < each + self._long(each)]
        assert address.value + size.value <= start + self._long(start)
        assert offset.value == 0 and self.handles[handle.value] == size.value
        assert address.value not in self.mapped
        self.mapped[address.value] = size.value
        self._used.add(handle.value)

    def _cuMemRelease(self, handle):
        size = self.handles.pop(handle.value)
        if handle.value not in self._used:  # else it is freed with the mapping
            self.room += size
        self._used.discard(handle.value)

    def _cuMemSetAccess(self, address, size, access, count):
        given = access._obj
        assert (given.flags, given.location.type, count.value) == (3, 1, 1)
        assert given.location.id == self.stack[-1].number
        assert self.mapped[address.value] == size.value
        self.open.add(address.value)

    def _cuMemUnmap(self, address, size):
        assert self.mapped.pop(address.value) == size.value
        self.open.discard(address.value)
        self.room += size.value

    def _long(self, start):
        return self.ranges[start][0].size
