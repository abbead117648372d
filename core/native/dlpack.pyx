# cython: boundscheck=False, wraparound=False
"""DLPack capsules: reads them, and creates them for memory of core.

The structures are those of dlpack.h, version 0.x (`DLManagedTensor`). In C, because a consumer may call the
deleter without the GIL, and an unconsumed capsule may be freed while an exception propagates.
"""

from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint64_t, uintptr_t

cdef extern from "Python.h":
    ctypedef struct PyObject
    ctypedef void (*Destructor)(PyObject*) noexcept
    object PyCapsule_New(void* pointer, const char* name, Destructor destructor)
    void* PyCapsule_GetPointer(PyObject* capsule, const char* name) except? NULL
    int PyCapsule_IsValid(PyObject* capsule, const char* name) noexcept
    void PyErr_Fetch(PyObject** kind, PyObject** value, PyObject** traceback) noexcept
    void PyErr_Restore(PyObject* kind, PyObject* value, PyObject* traceback) noexcept
    void Py_XINCREF(PyObject*) noexcept
    void Py_XDECREF(PyObject*) noexcept

cdef struct Device:
    int32_t kind
    int32_t number

cdef struct DataType:
    uint8_t code
    uint8_t bits
    uint16_t lanes

cdef struct Tensor:
    void* data
    Device device
    int32_t ndim
    DataType dtype
    int64_t* shape
    int64_t* strides
    uint64_t byte_offset

cdef struct Managed:
    Tensor tensor
    void* context
    void (*deleter)(Managed*) noexcept

cdef enum:
    MOST_DIMENSIONS = 64

cdef const char* NAME = "dltensor"  # of a capsule that is not consumed


def array_info(capsule):
    """Return ((code, bits, lanes), shape, strides or None, address, device) of a capsule; it stays usable."""
    if not PyCapsule_IsValid(<PyObject*>capsule, NAME):
        raise ValueError("not a DLPack capsule, or one that was taken before")
    cdef Tensor* tensor = &(<Managed*>PyCapsule_GetPointer(<PyObject*>capsule, NAME)).tensor
    cdef int32_t i
    if not 0 <= tensor.ndim <= MOST_DIMENSIONS:
        raise ValueError(f"a DLPack capsule of {tensor.ndim} dimensions")
    shape = tuple([tensor.shape[i] for i in range(tensor.ndim)])
    steps = None
    if tensor.strides != NULL:
        steps = tuple([tensor.strides[i] for i in range(tensor.ndim)])
    kind = (tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes)
    address = <uintptr_t>tensor.data + tensor.byte_offset
    return kind, shape, steps, address, (tensor.device.kind, tensor.device.number)


def lend(uintptr_t address, kind, tuple shape, device, owner):
    """Return a DLPack capsule for a C-order array of `kind` (code, bits); `owner` keeps its memory."""
    cdef Py_ssize_t n = len(shape), i
    cdef int64_t step = 1
    if n > MOST_DIMENSIONS:
        raise ValueError(f"a shape of {n} dimensions")
    cdef Managed* managed = <Managed*>PyMem_RawMalloc(sizeof(Managed))
    cdef int64_t* sizes = <int64_t*>PyMem_RawMalloc((2 * n + 1) * sizeof(int64_t))
    if managed == NULL or sizes == NULL:
        PyMem_RawFree(managed)
        PyMem_RawFree(sizes)
        raise MemoryError()
    try:
        managed.tensor.dtype.code, managed.tensor.dtype.bits = kind
        managed.tensor.dtype.lanes = 1
        managed.tensor.device.kind, managed.tensor.device.number = device
        for i in range(n - 1, -1, -1):
            sizes[i] = shape[i]
            sizes[n + i] = step
            step *= sizes[i]
    except BaseException:
        PyMem_RawFree(managed)
        PyMem_RawFree(sizes)
        raise
    managed.tensor.data = <void*>address
    managed.tensor.ndim = <int32_t>n
    managed.tensor.shape = sizes
    managed.tensor.strides = sizes + n
    managed.tensor.byte_offset = 0
    managed.context = <void*>owner
    managed.deleter = _delete
    Py_XINCREF(<PyObject*>owner)
    try:
        return PyCapsule_New(managed, NAME, _destroy)
    except BaseException:
        _delete(managed)
        raise


cdef void _delete(Managed* managed) noexcept with gil:
    """Drop the reference to the owner and free the structure. Called by the consumer, or by `_destroy`."""
    cdef PyObject* kind
    cdef PyObject* value
    cdef PyObject* traceback
    PyErr_Fetch(&kind, &value, &traceback)  # an exception may be propagating
    Py_XDECREF(<PyObject*>managed.context)
    PyErr_Restore(kind, value, traceback)
    PyMem_RawFree(managed.tensor.shape)
    PyMem_RawFree(managed)


cdef void _destroy(PyObject* capsule) noexcept:
    """Free the array if no consumer has taken it. A consumer renames the capsule, and frees the array."""
    if PyCapsule_IsValid(capsule, NAME):
        _delete(<Managed*>PyCapsule_GetPointer(capsule, NAME))
