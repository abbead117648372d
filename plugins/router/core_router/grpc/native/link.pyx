# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
# distutils: language = c++
"""Connections with gRPC calls under asyncio transports. See link.pyi.

    transport ─► Link ─► Session (C++) ─► Receiver ─► Link ─► Session ─► Flusher ─► transport
"""

from logging import getLogger

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.ref cimport Py_DECREF, Py_INCREF

cdef enum:
    WRITE_BYTES = 262144  # approximate size of one write to a transport
    READ_BYTES = 262144
    MOST_STREAMS = 1024  # that a client may have open
    LINGER_S = 5  # in which the last bytes of a connection are sent
    CANCELLED = 8  # codes of HTTP/2
    NO_ERROR = 0
    INTERNAL_ERROR = 2

logger = getLogger("core_router")


cdef inline string_view view_of(bytes data):
    return string_view(PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))


cdef class Receiver:
    cpdef received(self, bytes head, bytes data, bytes trailers, bint is_over):
        raise NotImplementedError

    cpdef gone(self, uint32_t error):
        raise NotImplementedError

    cpdef room(self):
        pass


cdef class Flusher:
    def __init__(self, loop):
        self._loop = loop
        self._links = []
        self._buffer = bytearray(READ_BYTES)
        self._bytes = self._buffer
        self._view = memoryview(self._buffer)

    cdef add(self, Link link):
        if not link._is_listed:
            link._is_listed = True
            self._links.append(link)
            if not self._is_scheduled:
                self._is_scheduled = True
                self._loop.call_soon(self._flush)

    def _flush(self):
        cdef Link link
        self._is_scheduled = False
        links, self._links = self._links, []
        for link in links:
            link._is_listed = False
            try:
                link.flush()
            except Exception:
                # The other links have no part in it, and must not get its bytes.
                logger.exception("a gRPC connection failed, and ends")
                self._wire.clear()
                link.abort()


cdef class Link:
    def __dealloc__(self):
        del self._session

    def connection_made(self, transport):
        self._transport = transport
        self._session = new Session(self._is_server, MOST_STREAMS)
        self._flusher.add(self)

    def connection_lost(self, error):
        self._is_closing = True
        self._transport = None
        if self._session != NULL:
            self._session.abandon()
            self._deliver()
            del self._session
            self._session = NULL

    def get_buffer(self, sizehint):
        # `buffer_updated` consumes the bytes at once, so that all links share one buffer.
        return self._flusher._view

    def buffer_updated(self, Py_ssize_t count):
        if self._session == NULL or self._is_closing:
            return
        self._session.receive(self._flusher._bytes, count)
        self._deliver()
        self._flusher.add(self)

    def eof_received(self):
        return False

    def pause_writing(self):
        self._is_paused = True

    def resume_writing(self):
        self._is_paused = False
        self._flusher.add(self)

    # output -----------------------------------------------------------------

    cdef flush(self):
        if self._session == NULL or self._is_closing:
            return
        cdef bint is_more = True
        while is_more and not self._is_paused and self._session != NULL:
            is_more = self._session.send(self._flusher._wire, WRITE_BYTES)
            if not self._flusher._wire.empty():
                self._write()
        if self._session != NULL:
            self._deliver()
        if self._session != NULL and self._session.over():
            self.close()

    cdef _write(self):
        cdef Wire* wire = &self._flusher._wire
        cdef External* each
        cdef size_t position = 0, i
        if wire.externals.empty():
            data = PyBytes_FromStringAndSize(wire.bytes.data(), wire.bytes.size())
            wire.clear()
            self._transport.write(data)
            return
        pieces = []
        for i in range(wire.externals.size()):
            each = &wire.externals[i]
            if each.at > position:
                pieces.append(PyBytes_FromStringAndSize(wire.bytes.data() + position, each.at - position))
                position = each.at
            owner = <object>each.owner
            if len(owner) == <Py_ssize_t>each.size:
                pieces.append(owner)
            else:
                pieces.append(memoryview(owner)[each.offset : each.offset + each.size])
        if wire.bytes.size() > position:
            pieces.append(PyBytes_FromStringAndSize(wire.bytes.data() + position, wire.bytes.size() - position))
        wire.clear()
        self._transport.writelines(pieces)

    def close(self):
        if not self._is_closing and self._transport is not None:
            self._is_closing = True
            transport = self._transport
            self._flusher._loop.call_later(LINGER_S, transport.abort)
            transport.close()

    def abort(self):
        if self._transport is not None:
            self._transport.abort()

    def tick(self):
        if self._session != NULL:
            self._session.tick()

    cpdef say_goodbye(self):
        if self._session != NULL:
            self._session.say_goodbye()
            self._flusher.add(self)

    cpdef size_t streams(self):
        return self._session.streams() if self._session != NULL else 0

    # news of the session ----------------------------------------------------

    cdef _deliver(self):
        cdef Stream* stream
        cdef int32_t id
        while self._session != NULL:
            stream = self._session.next_news()
            if stream == NULL:
                return
            id = stream.id
            try:
                self._deliver_one(stream)
            except Exception:
                # The other streams of the connection have no part in it.
                logger.exception("a gRPC call failed, and is reset")
                if self._session != NULL:
                    self._session.reset(id, INTERNAL_ERROR)
                    self._flusher.add(self)

    cdef _deliver_one(self, Stream* stream):
        cdef bytes head = None, data = None, trailers = None
        cdef Receiver receiver = None
        cdef bint is_new_end = stream.is_over and not stream.is_told, is_begun = False
        cdef bint is_closed = stream.is_closed, has_room = stream.has_room, is_sent = stream.is_sent()
        cdef int32_t id = stream.id
        cdef uint32_t error = stream.error
        if stream.has_head:
            head = stream.head
        if not stream.data.empty():
            data = stream.data
        if is_new_end and not stream.trailers.empty():
            trailers = stream.trailers
        if stream.tag != NULL:
            receiver = <Receiver>stream.tag
            if is_closed or (is_new_end and not self._is_server):
                self._release(stream)
        self._session.taken(stream)
        if receiver is None:
            if head is None or not self._is_server or is_closed:
                return
            receiver = self._begin(id, head)
            is_begun, head = True, None
        if head is not None or data is not None or is_new_end or is_begun:
            receiver.received(head, data, trailers, is_new_end)
            if is_new_end and not self._is_server:
                # The response has come: no more of the request is wanted.
                if not is_sent and not is_closed:
                    self._session.reset(id, NO_ERROR)
                return
        if is_closed:
            receiver.gone(error)
        elif has_room:
            receiver.room()

    cdef Receiver _begin(self, int32_t id, bytes head):
        raise NotImplementedError

    cdef _release(self, Stream* stream):
        cdef void* tag = stream.tag
        stream.tag = NULL
        if tag != NULL:
            Py_DECREF(<object>tag)

    # for receivers ----------------------------------------------------------

    cpdef bint write(self, int32_t id, bytes data):
        if self._session == NULL:
            return True
        self._flusher.add(self)
        return self._session.write(id, data)

    cpdef finish(self, int32_t id, bytes trailers):
        cdef Stream* stream
        if self._session == NULL:
            return
        self._session.finish(id, view_of(trailers) if trailers is not None else string_view())
        if self._is_server:
            stream = self._session.find(id)
            if stream != NULL:
                self._release(stream)
        self._flusher.add(self)

    cpdef open_window(self, int32_t id):
        if self._session != NULL:
            self._session.open_window(id)
            self._flusher.add(self)

    cpdef cancel(self, int32_t id):
        cdef Stream* stream
        if self._session == NULL:
            return
        stream = self._session.find(id)
        if stream != NULL:
            self._release(stream)
            self._session.reset(id, CANCELLED)
            self._flusher.add(self)


cdef class ClientLink(Link):
    def __init__(self, owner, Flusher flusher):
        self._owner = owner
        self._flusher = flusher
        self._is_server = True
        self.active_s = owner.now_s

    def connection_made(self, transport):
        Link.connection_made(self, transport)
        if self._session != NULL and not self._owner.enter(self):
            transport.abort()

    def connection_lost(self, error):
        Link.connection_lost(self, error)
        self._owner.leave(self)

    def buffer_updated(self, Py_ssize_t count):
        self.active_s = self._owner.now_s
        Link.buffer_updated(self, count)

    cdef Receiver _begin(self, int32_t id, bytes head):
        cdef Receiver receiver = self._owner.begin(self, id, head)
        cdef Stream* stream = self._session.find(id)
        if stream != NULL:
            Py_INCREF(receiver)
            stream.tag = <void*>receiver
        return receiver

    cpdef respond(self, int32_t id, bytes head, bint is_last):
        cdef Stream* stream
        if self._session == NULL:
            return
        self._session.respond(id, view_of(head), is_last)
        self._flusher.add(self)
        if is_last:
            stream = self._session.find(id)
            if stream != NULL:
                self._release(stream)

    cpdef size_t unread(self):
        return self._session.unsent() + self._transport.get_write_buffer_size() if self._transport else 0

    cpdef Py_ssize_t left(self):
        return self._session.sent() - self._transport.get_write_buffer_size() if self._transport else 0


cdef class ServerLink(Link):
    def __init__(self, server, pool, Flusher flusher):
        self.server = server
        self._pool = pool
        self._flusher = flusher

    def connection_lost(self, error):
        self._pool.lost(self)
        Link.connection_lost(self, error)

    cpdef bint takes_requests(self):
        return self._session != NULL and not self._is_closing and self._session.takes_requests()

    def receivers(self):
        cdef Stream* stream
        found = []
        if self._session != NULL:
            for stream in self._session.all():
                if stream.tag != NULL:
                    found.append(<object>stream.tag)
        return found

    cpdef int32_t request(self, bytes head, bytes timeout, Receiver receiver):
        cdef Stream* stream = NULL
        if self._session != NULL and not self._is_closing:
            stream = self._session.request(view_of(head), view_of(timeout))
        if stream == NULL:
            return -1
        Py_INCREF(receiver)
        stream.tag = <void*>receiver
        self._flusher.add(self)
        return stream.id
