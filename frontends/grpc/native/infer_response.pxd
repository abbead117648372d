from core.request cimport InferenceRequest
from core.response cimport InferenceResponse

cpdef response(InferenceResponse answer, InferenceRequest request)
