from core.response cimport InferenceResponse
from frontends.http.native.infer_request cimport OutputForm


cpdef tuple write(InferenceResponse response, OutputForm form)
cpdef tuple write_at_once(InferenceResponse response, OutputForm form)

# The JSON of an answer without what differs between answers to requests that are alike: the id with its name, and of
# each output first the shape, then the array or the size in bytes. So texts before, between and behind these.
cdef list texts_around_slots(InferenceResponse response, OutputForm form)
