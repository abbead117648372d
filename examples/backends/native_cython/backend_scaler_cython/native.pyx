# x: FP32[rows, columns] -> y: FP32[rows, columns]
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from libc.stdint cimport int32_t, int64_t
from libc.stdio cimport snprintf

from core.abi cimport *

cdef struct Scaler:
    core_instance native
    int64_t columns
    float mean[1024]
    float deviation[1024]

cdef int32_t execute(void* self, core_batch* batch, char* error, size_t error_size) noexcept nogil:
    cdef const Scaler* scaler = <const Scaler*>self
    cdef const core_tensor* x = core_input(batch, "x")
    cdef const float* from_ = <const float*>x.data
    cdef int64_t row, column, i = 0
    if x.shape[1] != scaler.columns:
        snprintf(error, error_size, "scaler.json has %lld columns, x has %lld", <long long>scaler.columns,
                 <long long>x.shape[1])
        return CORE_INVALID
    cdef float* to = <float*>batch.core.output(batch.all, "y", CORE_FP32, x.shape, x.dimensions, 0)
    if to == NULL:
        return CORE_INTERNAL  # core knows why
    for row in range(batch.rows):
        for column in range(scaler.columns):
            to[i] = (from_[i] - scaler.mean[column]) / scaler.deviation[column]
            i += 1
    return CORE_OK

cdef void release(object capsule) noexcept:
    PyMem_Free(<void*>PyCapsule_GetPointer(capsule, CORE_INSTANCE_CAPSULE))

def scaler(list mean, list deviation):
    """A capsule for ModelInstance.native, which owns the instance."""
    if not 0 < len(mean) == len(deviation) <= 1024:
        raise ValueError(f"scaler.json has {len(mean)} means and {len(deviation)} deviations; 1 to 1024 of both")
    cdef Scaler* made = <Scaler*>PyMem_Calloc(1, sizeof(Scaler))
    made.native.abi_version = CORE_ABI_VERSION
    made.native.struct_size = sizeof(core_instance)
    made.native.self = made
    made.native.execute = execute
    made.columns = len(mean)
    for i in range(made.columns):
        made.mean[i] = mean[i]
        made.deviation[i] = deviation[i]
    return PyCapsule_New(&made.native, CORE_INSTANCE_CAPSULE, release)
