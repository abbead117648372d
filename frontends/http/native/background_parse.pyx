# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
"""Parses large JSON of fast-path requests on another thread.

FastConnection ─► [BackgroundParse] ─► parse, on another thread ─► ModelEndpoint ─► PendingResponse
"""

cimport cython

from core.pipeline.endpoint cimport ModelEndpoint
from core.request cimport InferenceRequest
from core.response cimport Reply
from frontends.http.native.pending_response cimport PendingResponse
from frontends.http.native.listener_context cimport ListenerContext
from frontends.http.native.request_head cimport RequestHead

import asyncio

from core.errors import CoreError
from frontends.http.background import begin, turn
from frontends.http.codec.parse import parse
from frontends.shared.usage_meter import submitted

@cython.final
cdef class BackgroundParse:
    """Parses one request on another thread, and then submits it to its model on the event loop."""

    cdef ListenerContext _context
    cdef PendingResponse _pending_response
    cdef object _body, _signature

    def parsed(self):
        """Parse the body on another thread; return (request, OutputForm).

        Return None if the client has disconnected before. Raises CoreError for an invalid request.
        """
        cdef RequestHead request_head = self._pending_response.request_head
        if self._pending_response.sink is None:
            return None
        return parse(
            request_head.model, request_head.head.version, self._signature, request_head.headers(), self._body,
            self._context.most_bytes, self._context.regions,
        )

    async def _read(self):
        async with turn():
            return await begin(self.parsed)

    def _over(self, task):
        cdef PendingResponse pending = self._pending_response
        cdef RequestHead request_head = pending.request_head
        cdef ModelEndpoint endpoint
        cdef Reply reply
        if task.cancelled() or pending.sink is None:
            return
        self._body = None
        try:
            request, pending.form = task.result()
            pending.sink.was_read(pending, <InferenceRequest>request)
            endpoint = self._context.endpoints.find(request_head.model, request_head.head.version)  # may have changed meanwhile
            if not self._context.meters:
                reply = endpoint.submit(<InferenceRequest>request)
            else:
                reply = pending.active.meter().ask(submitted, endpoint, request)
            pending.reply = reply
            reply.listen(pending)
        except CoreError as error:
            pending.fail(error)
        except Exception:
            pending.fail(None)


cdef parse_in_background(ListenerContext context, PendingResponse pending, signature, body):
    cdef BackgroundParse parse_run = BackgroundParse.__new__(BackgroundParse)
    parse_run._context = context
    parse_run._pending_response = pending
    parse_run._signature = signature
    parse_run._body = body
    context.loop.create_task(parse_run._read()).add_done_callback(parse_run._over)
