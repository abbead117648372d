# distutils: language = c++
# cython: freethreading_compatible=True
"""Native instances of the backends identity, repeat and square, and their capsules."""

from cpython.pycapsule cimport PyCapsule_New
from libc.stdint cimport int32_t, int64_t
from libcpp cimport bool as cbool
from libcpp.string cimport string
from libcpp.vector cimport vector

from core.abi cimport CORE_INSTANCE_CAPSULE, core_instance


cdef extern from "identity.hpp" namespace "backend_testing" nogil:
    cppclass Pair:
        string input
        string output
        int32_t dtype
        vector[int64_t] dims
        cbool ragged

    cppclass NativeIdentity "backend_testing::Identity":
        vector[Pair] pairs
        int64_t delay_ms
        string model
        string version
        core_instance native
        void close()

cdef extern from "repeat.hpp" namespace "backend_testing" nogil:
    cppclass NativeRepeat "backend_testing::Repeat":
        core_instance native
        void close()

cdef extern from "square.hpp" namespace "backend_testing" nogil:
    cppclass NativeSquare "backend_testing::Square":
        int64_t infer_delay_ns
        int64_t output_delay_ns
        int64_t cancel_delay_ns
        int64_t fail_count
        int64_t empty_count
        core_instance native
        void close()


# Each object owns its instance and outlives its capsule, because core releases the capsule before close.

cdef class Identity:
    cdef NativeIdentity* _native

    def __cinit__(self):
        self._native = new NativeIdentity()

    def __init__(self, model, version, pairs, delay_ms):
        cdef Pair made
        self._native.model = model.encode()
        self._native.version = version.encode()
        self._native.delay_ms = delay_ms
        for input_name, output_name, dtype, dims, ragged in pairs:
            made.input = input_name.encode()
            made.output = output_name.encode()
            made.dtype = dtype
            made.dims = dims
            made.ragged = ragged
            self._native.pairs.push_back(made)

    def capsule(self):
        return PyCapsule_New(&self._native.native, CORE_INSTANCE_CAPSULE, NULL)

    def close(self):
        with nogil:
            self._native.close()

    def __dealloc__(self):
        del self._native


cdef class Repeat:
    cdef NativeRepeat* _native

    def __cinit__(self):
        self._native = new NativeRepeat()

    def capsule(self):
        return PyCapsule_New(&self._native.native, CORE_INSTANCE_CAPSULE, NULL)

    def close(self):
        with nogil:
            self._native.close()

    def __dealloc__(self):
        with nogil:
            del self._native


cdef class Square:
    cdef NativeSquare* _native

    def __cinit__(self):
        self._native = new NativeSquare()

    def __init__(self, infer_delay_ns, output_delay_ns, cancel_delay_ns, fail_count, empty_count):
        self._native.infer_delay_ns = infer_delay_ns
        self._native.output_delay_ns = output_delay_ns
        self._native.cancel_delay_ns = cancel_delay_ns
        self._native.fail_count = fail_count
        self._native.empty_count = empty_count

    def capsule(self):
        return PyCapsule_New(&self._native.native, CORE_INSTANCE_CAPSULE, NULL)

    def close(self):
        with nogil:
            self._native.close()

    def __dealloc__(self):
        with nogil:
            del self._native
