from core.response cimport InferenceResponse
from frontends.http.native.infer_request cimport OutputForm


cpdef tuple write(InferenceResponse response, OutputForm form)
cpdef tuple write_at_once(InferenceResponse response, OutputForm form)

# The JSON of an answer without the arrays of its outputs: what is before the first of them, between them, and
# behind the last one.
cdef list texts_around_numbers(InferenceResponse response, OutputForm form)
