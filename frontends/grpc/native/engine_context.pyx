# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
# distutils: language = c++
"""EngineContext: methods, settings and the read buffer that all connections of one listener share."""

import random

from libc.stdint cimport int64_t

from frontends.grpc.native.exchange cimport set_bounds
from frontends.grpc.native.session cimport Settings
from frontends.shared.call_observers cimport CallObservers

from frontends.grpc.method import StreamMethod

cdef enum:
    READ_BYTES = 65536  # of one read; one buffer serves all connections of a port


cdef class MethodRoute:
    """A method, with copies of the attributes that every call needs."""

    def __init__(self, method, bint compresses):
        self.method = method
        self.streams = isinstance(method, StreamMethod)
        self.begin = None if self.streams else method.begin
        self.enter = method.enter
        self.received = method.received
        self.load = method.load
        self.reports_all = method.load is not None and method.load.unasked is not None
        self.compresses = compresses and method.compress


cdef class EngineContext:
    """Methods, settings, limits and the read buffer of all connections of one listener."""

    def __init__(
        self, methods, options, loop, int compression_level, int64_t most_message_bytes, account,
        CallObservers observers,
    ):
        self.loop = loop
        self.account = account
        self.observers = observers
        self.routes = []
        self.connections = set()
        self.compression_level = compression_level
        for method in methods.values():
            self.routes.append(MethodRoute(method, compression_level != 0))
            self.methods.add(
                (<str>method.path).encode(), isinstance(method, StreamMethod), method.enter is not None
            )
        self.buffer = bytearray(READ_BYTES)
        self.bytes = self.buffer
        self.view = memoryview(self.buffer)
        self.most_message_bytes = most_message_bytes
        self.most_request_bytes = min(most_message_bytes, options.grpc_max_message_size)
        set_bounds(self.settings, options, self.most_request_bytes)
        self.age_ms = options.grpc_max_connection_age

    cdef Settings settings_of_one(self) except *:
        """Return the settings of a new connection, with its own greatest age."""
        cdef Settings settings = self.settings
        if self.age_ms:
            # Vary the age by 10 %, so that simultaneous clients do not reconnect simultaneously.
            settings.times.age_ns = <int64_t>(self.age_ms * 1e6 * random.uniform(0.9, 1.1))
        return settings

    def close(self, on_empty):
        """Refuse new calls; call `on_empty` when no connection is left: maybe at once, and maybe again."""
        self.closed = True
        self.on_empty = on_empty
        for connection in list(self.connections):
            connection.refuse_calls()
        self.forget(None)

    def cut_off(self):
        """End every call with the status UNAVAILABLE, and close every connection after its last bytes."""
        for connection in list(self.connections):
            connection.cut_off()

    def abort(self):
        """Abort the transport of every connection: unsent bytes are lost."""
        for connection in list(self.connections):
            connection.abort()

    cdef forget(self, connection):
        self.connections.discard(connection)
        if self.on_empty is not None and not self.connections:
            self.on_empty()
