from core.request cimport InferenceRequest
from core.response cimport InferenceResponse
from frontends.http.native.infer_request cimport OutputForm
from frontends.http.native.repeated cimport RepeatedAnswer, RepeatedRequest


# What is to be found again of a request; None if a body with the same JSON may mean another one. `whole` is the
# size of its body in bytes.
cdef RepeatedRequest binary_request(
    InferenceRequest request, OutputForm form, bytes json, Py_ssize_t whole
)

# What is to be found again of an answer; None where its JSON depends on more than its tensors. `parts` are
# those of its body: the JSON, then each tensor.
cdef RepeatedAnswer binary_answer(
    InferenceResponse response, OutputForm form, bytes answer, list parts
)
