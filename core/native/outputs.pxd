from libc.stdint cimport int32_t, int64_t, uint64_t
from libcpp.string cimport string
from libcpp.vector cimport vector


cdef extern from "execution/answer.hpp" namespace "core_native" nogil:
    cppclass Block:
        char* data

    cppclass Parameter:
        string name
        string text
        int64_t integer
        double number
        int32_t kind


cdef class OutputMemory:
    cdef Block* _block
    cdef OutputMemory _whole
    cdef char* _data
    cdef Py_ssize_t _size


cdef OutputMemory memory(Block* block, OutputMemory whole, char* data, uint64_t size)
cdef error_of(int32_t status, const string& text, str model)
cdef dict parameters_of(vector[Parameter]& parameters)
