import cython

from backend_python.api.request cimport InferenceRequest, all_received, received
from backend_python.api.response cimport InferenceResponse
from backend_python.api.tensor cimport Tensor, all_shared
from backend_python.returned cimport checked

cdef int BYTES


cdef class Handover:
    cdef bint _on_gpu
    cdef object _host
    cdef list _states
    cdef frozenset _outputs
    cdef frozenset _declared
    cdef bint _decoupled
    cdef public object executing

    cpdef list requests(self, batch)
    @cython.locals(i=cython.Py_ssize_t, requests=list, tensors=list)
    cdef list _plain(self, batch, list inputs)
    cdef list _there(self, batch)
    @cython.locals(theirs=InferenceRequest)
    cdef _add_details(self, list found, list requests, list indices)
    @cython.locals(requests=list)
    cpdef run(self, batch, execute, failed)
    @cython.locals(i=cython.Py_ssize_t, answers=list, request=InferenceRequest, response=InferenceResponse)
    cpdef answer(self, batch, list requests, list responses)
    @cython.locals(request=InferenceRequest)
    cdef _answer_each(self, batch, list requests, list responses)


@cython.locals(tensor=Tensor, found=list, keeps_all=cython.bint)
cdef list _outputs(list tensors, frozenset wanted, frozenset declared)
