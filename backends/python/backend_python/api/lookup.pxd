import cython

from backend_python.api.request cimport InferenceRequest
from backend_python.api.response cimport InferenceResponse
from backend_python.api.tensor cimport Tensor


cdef list _inputs(InferenceRequest request)
cdef list _outputs(InferenceResponse response)
@cython.locals(tensor=Tensor)
cdef Tensor _tensor(list tensors, str name)
