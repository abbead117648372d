from frontends.http.native.pending_response cimport PendingResponse
from frontends.http.native.listener_context cimport ListenerContext

# Start to parse the body of a request on another thread, and return. Later, on the event loop, the request
# goes to the model that pending.request_head names; an error ends the pending response. `signature` is that
# of the model.
cdef parse_in_background(ListenerContext context, PendingResponse pending, signature, body)
