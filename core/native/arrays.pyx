# cython: boundscheck=False, wraparound=False
"""Arrays over bytes and bytes over arrays, at the cost of one object."""

cimport numpy as np
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.memoryview cimport PyMemoryView_FromObject
from cpython.ref cimport Py_INCREF

import numpy

np.import_array()

cdef extern from *:
    const Py_ssize_t PY_SSIZE_T_MAX

cdef extern from "numpy/arrayobject.h":
    object PyArray_NewFromDescr(
        type subtype, np.dtype descr, int nd, np.npy_intp* dims, np.npy_intp* strides, void* data,
        int flags, object obj,
    )

cdef enum:
    MOST_DIMENSIONS = 64  # of a numpy array
    # Below this a copy is cheaper than the object that keeps a view's owner.
    COPIED_UP_TO = 4096

cdef np.dtype _UINT8 = np.dtype("uint8")
cdef object _contiguous = numpy.ascontiguousarray


cpdef object view(object raw, object dtype, tuple shape):
    """An array over the elements in `raw`; see arrays.pyi."""
    cdef Py_buffer buffer
    cdef np.npy_intp dims[MOST_DIMENSIONS]
    cdef Py_ssize_t n = len(shape), i, left
    cdef void* data
    cdef bint readonly = True
    cdef np.dtype descr = dtype
    if n > MOST_DIMENSIONS:
        raise ValueError(f"a shape of {n} dimensions; numpy has at most {MOST_DIMENSIONS}")
    if type(raw) is bytes:
        data = PyBytes_AS_STRING(raw)
        left = PyBytes_GET_SIZE(raw)
    else:
        PyObject_GetBuffer(raw, &buffer, PyBUF_SIMPLE)
        data = buffer.buf
        left = buffer.len
        readonly = buffer.readonly
        # A memoryview of our own holds the buffer where it is, whatever its owner does with others.
        raw = PyMemoryView_FromObject(raw)
        PyBuffer_Release(&buffer)
    cdef Py_ssize_t size = descr.itemsize
    for i in range(n):
        dims[i] = shape[i]
        if dims[i] < 0 or (dims[i] and size > PY_SSIZE_T_MAX // dims[i]):
            raise ValueError(f"shape {shape} is no shape of an array")
        size *= dims[i]
    if size != left:
        raise ValueError(f"shape {shape} of {dtype} has {size} bytes, the buffer has {left}")
    cdef np.ndarray array
    Py_INCREF(descr)  # PyArray_NewFromDescr takes a reference
    array = PyArray_NewFromDescr(
        np.ndarray, descr, <int>n, dims, NULL, data,
        np.NPY_ARRAY_CARRAY_RO if readonly else np.NPY_ARRAY_CARRAY, None,
    )
    np.set_array_base(array, raw)
    return array


cpdef bint has_dtype(object value, object dtype) noexcept:
    """Whether a value is an array with that very dtype; see arrays.pyi."""
    return type(value) is np.ndarray and <object>np.PyArray_DESCR(<np.ndarray>value) is dtype


cpdef object flat(object array, object dtype):
    """The bytes of an array; see arrays.pyi."""
    cdef np.ndarray source
    cdef np.npy_intp size
    cdef np.ndarray octets
    if not has_dtype(array, dtype) or not np.PyArray_IS_C_CONTIGUOUS(<np.ndarray>array):
        array = _contiguous(array, dtype)
    source = array
    size = np.PyArray_NBYTES(source)
    if size <= COPIED_UP_TO:
        return PyBytes_FromStringAndSize(<char*>np.PyArray_DATA(source), size)
    Py_INCREF(_UINT8)
    octets = PyArray_NewFromDescr(
        np.ndarray, _UINT8, 1, &size, NULL, np.PyArray_DATA(source), np.NPY_ARRAY_CARRAY_RO, None
    )
    np.set_array_base(octets, source)
    return PyMemoryView_FromObject(octets)


cpdef Py_ssize_t length(object raw) except -1:
    """Bytes of an object; see arrays.pyi."""
    cdef Py_buffer buffer
    cdef Py_ssize_t found
    if type(raw) is bytes:
        return PyBytes_GET_SIZE(raw)
    PyObject_GetBuffer(raw, &buffer, PyBUF_SIMPLE)
    found = buffer.len
    PyBuffer_Release(&buffer)
    return found
