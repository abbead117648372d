import cython

from backend_python.api.request cimport InferenceRequest
from backend_python.api.response cimport InferenceResponse

cdef int TRITONSERVER_REQUEST_RELEASE_RESCHEDULE


@cython.locals(responses=list, i=cython.Py_ssize_t, request=InferenceRequest)
cpdef list checked(list requests, returned, bint decoupled)
