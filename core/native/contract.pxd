from libc.stdint cimport int32_t
from libcpp cimport bool as cbool
from libcpp.memory cimport shared_ptr
from libcpp.string cimport string
from libcpp.vector cimport vector


cdef extern from "execution/calls.hpp" namespace "core_native" nogil:
    cppclass OutputContract "core_native::Contract::Output":
        string name
        int32_t dtype

    cppclass Contract:
        string model
        cbool has_rows
        cbool decoupled
        vector[OutputContract] outputs


cdef class ModelContract:
    cdef object signature
    cdef shared_ptr[Contract] native
    cdef str model
    cdef bint decoupled
    cdef list inputs
    cdef list outputs
    cdef list dtypes
