from frontends.http.native.pending_response cimport PendingResponse
from frontends.http.native.listener_context cimport ListenerContext

# Read the request in a body on another thread, and hand it to its model then: the model is the one that
# `pending.told` names, `signature` its. Errors end the pending.
cdef parse_in_background(ListenerContext context, PendingResponse pending, signature, body)
