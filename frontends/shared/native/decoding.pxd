# cython: boundscheck=False, wraparound=False
"""Inline functions that make str and tuples of the texts, names and shapes in a message."""

from cpython.long cimport PyLong_FromLongLong
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int64_t
from libc.string cimport memcmp

cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL


cdef inline str text_of(const char* data, size_t size):
    return PyUnicode_DecodeUTF8(data, <Py_ssize_t>size, NULL) if size else ""


cdef inline str name_of(list names, size_t place, const char* data, size_t size):
    """Return the str of UTF-8 bytes: the one in `names[place]` if it is equal, else a new one, kept there."""
    cdef Py_ssize_t known_size = 0
    cdef const char* known
    name = names[<Py_ssize_t>place]
    if name is not None:
        known = PyUnicode_AsUTF8AndSize(name, &known_size)
        if <size_t>known_size == size and memcmp(known, data, size) == 0:
            return <str>name
    name = text_of(data, size)
    names[<Py_ssize_t>place] = name
    return <str>name


cdef inline tuple shape_of(const int64_t* sizes, size_t count):
    cdef tuple shape = PyTuple_New(<Py_ssize_t>count)
    cdef size_t i
    for i in range(count):
        size = PyLong_FromLongLong(sizes[i])
        Py_INCREF(size)  # PyTuple_SET_ITEM takes a reference
        PyTuple_SET_ITEM(shape, <Py_ssize_t>i, size)
    return shape
