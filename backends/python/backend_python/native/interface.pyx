# cython: boundscheck=False, wraparound=False
"""What the classes of the interface take from C; see interface.pyi."""

cimport numpy as np
from cpython.object cimport PyTypeObject

cdef extern from *:
    """
    #ifdef Py_TPFLAGS_IMMUTABLETYPE
    #define open_type(type) ((type)->tp_flags &= ~Py_TPFLAGS_IMMUTABLETYPE)
    #else
    #define open_type(type) ((void)(type))
    #endif
    """
    void open_type(PyTypeObject* type) noexcept

from backend_python.api.datatypes import NUMBERS

np.import_array()

cdef enum:
    TYPES = 24  # numpy's own; those of other packages have larger numbers

cdef int _numbers[TYPES]  # numpy's number of a type → that of its datatype, 0 for none


cdef _fill():
    for dtype, number in NUMBERS.items():
        _numbers[dtype.num] = number
    # Two of numpy's types are one of C's 64 bits.
    for letter in "lqLQ":
        dtype = np.dtype(letter)
        _numbers[dtype.num] = NUMBERS.get(dtype, 0)


cpdef int plain_number(object array) noexcept:
    cdef int kind
    if not np.PyArray_CheckExact(array):
        return 0
    kind = np.PyArray_TYPE(<np.ndarray>array)
    if not 0 <= kind < TYPES or not np.PyArray_IS_C_CONTIGUOUS(<np.ndarray>array):
        return 0
    return _numbers[kind] if np.PyArray_ISNOTSWAPPED(<np.ndarray>array) else 0


def open_to_changes(type cls not None):
    open_type(<PyTypeObject*>cls)


_fill()
