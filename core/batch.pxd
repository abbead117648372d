import cython

from core.config.signature cimport InputSpec, Signature
from core.request cimport InferenceRequest, RequestedOutput
from core.tensor cimport Tensor, array_tensor


cdef class Batch:
    cdef public list requests
    cdef public Signature signature
    cdef public object delivery
    cdef public long long rows
    cdef dict _gathered
    cdef public long long start_ns
    cdef public long long compute_start_ns
    cdef public long long compute_end_ns
    cdef public long long end_ns

    @cython.locals(request=InferenceRequest)
    cdef _reset(self, list requests, Signature signature, delivery)
    @cython.locals(request=InferenceRequest)
    cpdef on_cancel(self, listener)
    @cython.locals(request=InferenceRequest, tensor=Tensor, found=list, inputs=list)
    cpdef list arrays(self)
    @cython.locals(request=InferenceRequest, output=RequestedOutput, wanted=set, states=dict)
    cpdef list wanted(self, list names)
    @cython.locals(request=InferenceRequest, found=list, i=cython.Py_ssize_t)
    cpdef list indices_with_details(self)
    @cython.locals(j=cython.Py_ssize_t, outputs=list)
    cpdef respond_all(self, list answers)
    @cython.locals(spec=InputSpec, tensor=Tensor, request=InferenceRequest)
    cdef _only(self, str name)
    @cython.locals(spec=InputSpec, first=Tensor, tensor=Tensor, tensors=list, raws=list,
                   request=InferenceRequest, rows=cython.longlong)
    cdef _gather(self, str name)


@cython.locals(batch=Batch)
cpdef Batch new_batch(list requests, Signature signature, delivery)
