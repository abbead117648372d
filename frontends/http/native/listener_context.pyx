# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
"""ListenerContext: the state that all connections of one port share."""

cimport cython

from frontends.shared.call_observers cimport CallObservers

from frontends.http.options import HttpOptions
from frontends.shared.memory import MemoryControl


@cython.final
cdef class ListenerContext:
    """The server, the limits and the callbacks that all connections of one port share."""

    def __init__(
        self, server, loop, *, fallback, opened, lost, double keep_alive_s, interceptors=None, access_log=None,
        bint leaves_origins=False, CallObservers observers=None,
    ):
        self.endpoints = server.models.endpoints
        self.observers = CallObservers() if observers is None else observers
        self.account = server.account
        self.regions = MemoryControl.of(server).regions
        self.tracing = server.tracing
        self.access_log = access_log
        options = HttpOptions.of(server.options)
        self.most_bytes = self.most = options.http_max_input_size
        self.most_body = options.http_max_body_size
        self.loop = loop
        self.interceptors = interceptors
        # Whether each request passes a UsageMeter.
        self.meters = access_log is not None or (interceptors is not None and interceptors.names is not None)
        self.fallback = fallback
        self.opened = opened
        self.lost = lost
        self.keep_alive_s = keep_alive_s
        self.leaves_origins = leaves_origins

    cdef bint takes(self, const Head* head):
        """Return whether the fast path may serve a request with this head; else aiohttp serves it.

        It may not while the server traces: any request may be traced then. Nor if the body is larger than
        `most_body`, or than `most` without JSON in front, nor with `leaves_origins` if there is an Origin.
        """
        if head.body_size > self.most and (
            not head.has_json_size or head.json_size.size == 1 and head.json_size.data[0] == c"0"
        ):
            return False
        if head.body_size > self.most_body or (head.has_origin and self.leaves_origins):
            return False
        return not self.tracing.on
