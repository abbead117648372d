from core.batch cimport Batch
from core.dtypes cimport DataType
from core.request cimport InferenceRequest, RequestedOutput
from core.tensor cimport Tensor


cpdef list finish(list tensors, InferenceRequest request, signature)
cdef Tensor _whole(str name, value, signature)
cdef _wanted(InferenceRequest request, str name)
cdef _spec(signature, name)
