# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
# distutils: language = c++
"""Blocks of fields: heads and trailers of gRPC. See blocks.pyi."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport uint32_t
from libc.string cimport memcmp, memcpy

import struct

_SIZES = struct.Struct("=II")


cpdef bytes field(bytes block, bytes name):
    cdef const char* at = PyBytes_AS_STRING(block)
    cdef const char* end = at + PyBytes_GET_SIZE(block)
    cdef const char* wanted = PyBytes_AS_STRING(name)
    cdef size_t size = PyBytes_GET_SIZE(name)
    cdef uint32_t sizes[2]
    while at < end:
        memcpy(sizes, at, sizeof(sizes))
        at += sizeof(sizes)
        if sizes[0] == size and memcmp(at, wanted, size) == 0:
            return at[sizes[0] : sizes[0] + sizes[1]]
        at += sizes[0] + sizes[1]
    return None


cpdef int status_of(bytes block):
    cdef bytes found = field(block, b"grpc-status") if block is not None else None
    if found is None:
        return -1
    return int(found) if found.isdigit() and len(found) < 4 else 2


def fields_of(bytes block):
    found = []
    at = 0
    while at < len(block):
        name, value = _SIZES.unpack_from(block, at)
        at += 8
        found.append((block[at : at + name], block[at + name : at + name + value]))
        at += name + value
    return found


def block_of(fields):
    return b"".join([_SIZES.pack(len(name), len(value)) + name + value for name, value in fields])


def without(bytes block, bytes name):
    return block_of([each for each in fields_of(block) if each[0] != name])
