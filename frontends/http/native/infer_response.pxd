from core.response cimport InferenceResponse
from frontends.http.native.infer_request cimport OutputForm


cpdef tuple write(InferenceResponse response, OutputForm form)
cpdef tuple write_at_once(InferenceResponse response, OutputForm form)

# Return the texts of a response's JSON before, between and after its slots, as bytes. The slots are the
# member id, then for each output its shape, and its array or its binary_data_size.
cdef list texts_around_slots(InferenceResponse response, OutputForm form)
