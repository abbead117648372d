# cython: boundscheck=False, wraparound=False
"""Conversions between arrays and bytes."""

cimport numpy as np
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.long cimport PyLong_FromSsize_t
from cpython.memoryview cimport PyMemoryView_FromObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from libc.string cimport memcpy, memset

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
    # Below this size a copy is cheaper than an object that refers to the owner of a view.
    COPIED_UP_TO = 4096

cdef np.dtype _UINT8 = np.dtype("uint8")
cdef object _contiguous = numpy.ascontiguousarray


cpdef object view(object raw, object dtype, tuple shape):
    """Return an array over the bytes of `raw`, without a copy. Raise ValueError if the sizes differ."""
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
        # A new memoryview keeps the buffer, even if the owner releases its other views.
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
    return _over(
        data, descr, <int>n, dims, np.NPY_ARRAY_CARRAY_RO if readonly else np.NPY_ARRAY_CARRAY, raw
    )


cdef inline object _over(
    void* data, np.dtype descr, int n, np.npy_intp* dims, int flags, object owner
):
    """Return an array over memory that `owner` keeps."""
    cdef np.ndarray array
    Py_INCREF(descr)  # PyArray_NewFromDescr takes a reference
    array = PyArray_NewFromDescr(np.ndarray, descr, n, dims, NULL, data, flags, None)
    np.set_array_base(array, owner)
    return array


cpdef object joint_view(list arrays, object dtype):
    """Return a view of rows that follow each other in one array; None for other arrays."""
    cdef np.npy_intp dims[MOST_DIMENSIONS]
    cdef np.ndarray first = arrays[0], each
    cdef object owner = np.get_array_base(first)
    cdef char* end = np.PyArray_BYTES(first)
    cdef int i, n = np.PyArray_NDIM(first)
    if n == 0 or not isinstance(owner, np.ndarray):
        return None
    for i in range(n):
        dims[i] = np.PyArray_DIM(first, i)
    dims[0] = 0
    for each in arrays:
        if (np.get_array_base(each) is not owner or np.PyArray_BYTES(each) != end
                or not has_dtype(each, dtype) or not np.PyArray_IS_C_CONTIGUOUS(each)):
            return None
        end += np.PyArray_NBYTES(each)
        dims[0] += np.PyArray_DIM(each, 0)
    return _over(np.PyArray_DATA(first), dtype, n, dims, np.NPY_ARRAY_CARRAY_RO, owner)


cpdef bint has_dtype(object value, object dtype) noexcept:
    """Return whether a value is an np.ndarray (no subclass), whose dtype is the object `dtype` itself."""
    return type(value) is np.ndarray and <object>np.PyArray_DESCR(<np.ndarray>value) is dtype


cpdef tuple shape_of(object array):
    """Return the dimensions of an array."""
    cdef int i, n = np.PyArray_NDIM(<np.ndarray?>array)
    cdef np.npy_intp* dims = np.PyArray_DIMS(<np.ndarray>array)
    cdef tuple shape = PyTuple_New(n)
    for i in range(n):
        size = PyLong_FromSsize_t(dims[i])
        Py_INCREF(size)  # PyTuple_SET_ITEM takes a reference
        PyTuple_SET_ITEM(shape, i, size)
    return shape


cpdef object flat(object array, object dtype):
    """Return the row-major bytes of an array converted to `dtype`: `bytes` if few, else a read-only view."""
    cdef np.ndarray source
    cdef np.npy_intp size
    if not has_dtype(array, dtype) or not np.PyArray_IS_C_CONTIGUOUS(<np.ndarray>array):
        array = _contiguous(array, dtype)
    source = array
    size = np.PyArray_NBYTES(source)
    if size <= COPIED_UP_TO:
        return PyBytes_FromStringAndSize(<char*>np.PyArray_DATA(source), size)
    return PyMemoryView_FromObject(
        _over(np.PyArray_DATA(source), _UINT8, 1, &size, np.NPY_ARRAY_CARRAY_RO, source)
    )


cpdef Py_ssize_t length(object raw) except -1:
    """Return the size in bytes of an array or of a contiguous buffer."""
    cdef Py_buffer buffer
    cdef Py_ssize_t found
    if type(raw) is bytes:
        return PyBytes_GET_SIZE(raw)
    if type(raw) is np.ndarray:
        return np.PyArray_NBYTES(<np.ndarray>raw)
    PyObject_GetBuffer(raw, &buffer, PyBUF_SIMPLE)
    found = buffer.len
    PyBuffer_Release(&buffer)
    return found


cdef Py_ssize_t fill(char* to, Py_ssize_t room, object raw) except -1:
    """Copy the bytes of `raw`, row-major, to `to`; return their number. Raise ValueError if over `room`."""
    cdef Py_buffer buffer
    cdef Py_ssize_t size
    if type(raw) is bytes:
        size = PyBytes_GET_SIZE(raw)
        _check(size, room)
        memcpy(to, PyBytes_AS_STRING(raw), size)
        return size
    if type(raw) is np.ndarray:
        if np.PyArray_TYPE(<np.ndarray>raw) == np.NPY_OBJECT:
            raise ValueError("an array of objects has no bytes")
        if not np.PyArray_IS_C_CONTIGUOUS(<np.ndarray>raw):
            raw = _contiguous(raw)
        size = np.PyArray_NBYTES(<np.ndarray>raw)
        _check(size, room)
        memcpy(to, np.PyArray_DATA(<np.ndarray>raw), size)
        return size
    PyObject_GetBuffer(raw, &buffer, PyBUF_SIMPLE)
    size = buffer.len
    try:
        _check(size, room)
        memcpy(to, buffer.buf, size)
    finally:
        PyBuffer_Release(&buffer)
    return size


cdef inline int _check(Py_ssize_t size, Py_ssize_t room) except -1:
    if size > room:
        raise ValueError(f"{size} bytes where {room} were expected")
    return 0


cpdef bytes joined(list parts, Py_ssize_t alignment):
    """Return a copy of all parts in a row, each padded with zeros to a multiple of `alignment`."""
    cdef Py_ssize_t size = 0, copied, gap, at = 0
    for part in parts:
        copied = length(part)
        size += copied + _gap(copied, alignment)
    cdef bytes whole = PyBytes_FromStringAndSize(NULL, size)
    cdef char* to = PyBytes_AS_STRING(whole)
    for part in parts:
        copied = fill(to + at, size - at, part)
        gap = min(_gap(copied, alignment), size - at - copied)
        memset(to + at + copied, 0, gap)
        at += copied + gap
    return whole


cdef inline Py_ssize_t _gap(Py_ssize_t size, Py_ssize_t alignment) noexcept:
    return (alignment - size % alignment) % alignment


cpdef object part(object raw, Py_ssize_t start, Py_ssize_t size):
    """Return `size` bytes of a flat buffer from `start` on: of `bytes` a copy, or ValueError; else a view."""
    if type(raw) is not bytes:
        return (raw if type(raw) is memoryview else PyMemoryView_FromObject(raw))[start : start + size]
    if start < 0 or size < 0 or start > PyBytes_GET_SIZE(raw) - size:
        raise ValueError(f"{size} bytes from {start} on, of {PyBytes_GET_SIZE(raw)}")
    return PyBytes_FromStringAndSize(PyBytes_AS_STRING(raw) + start, size)
