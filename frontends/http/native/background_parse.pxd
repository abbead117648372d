from frontends.http.native.pending_response cimport PendingResponse
from frontends.http.native.listener_context cimport ListenerContext

# Parse the body of a request on another thread, then give the request to its model, which `pending.head`
# names. `signature` is that of the model. Errors end the pending response.
cdef parse_in_background(ListenerContext context, PendingResponse pending, signature, body)
