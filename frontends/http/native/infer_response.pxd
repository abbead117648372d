from core.response cimport InferenceResponse
from frontends.http.native.infer_request cimport OutputForm


cpdef tuple write(InferenceResponse response, OutputForm form)
