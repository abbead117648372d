from libc.stdint cimport uint64_t

from core.request cimport InferenceRequest
from core.response cimport InferenceResponse
from frontends.http.native.infer_request cimport OutputForm
from frontends.http.native.repeated cimport RepeatedAnswer, RepeatedRequest

cdef enum:
    # Bytes: in more than that the numbers are what takes the time. So a short list takes little memory too much.
    MOST_JSON = 16 * 1024

# What is to be found again of a request whose body is all JSON, of no more than MOST_JSON bytes; None if one
# that differs in numbers alone may mean another one.
cdef RepeatedRequest json_request(
    InferenceRequest request, OutputForm form, bytes body, uint64_t most_bytes
)

# What is to be found again of an answer that is all JSON; None where that depends on more than its tensors.
# `start` is the beginning of its head, before the server's own fields.
cdef RepeatedAnswer json_answer(InferenceResponse response, OutputForm form, bytes start)
