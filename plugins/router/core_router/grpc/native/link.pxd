from libc.stdint cimport int32_t, uint32_t
from libcpp cimport bool
from libcpp.string cimport string
from libcpp.vector cimport vector


cdef extern from "<string_view>" namespace "std" nogil:
    cdef cppclass string_view:
        string_view()
        string_view(const char* data, size_t size)
        const char* data()
        size_t size()


cdef extern from "session.hpp" namespace "core_router":
    cdef cppclass External:
        size_t at
        size_t offset
        size_t size
        void* owner

    cdef cppclass Wire:
        string bytes
        vector[External] externals
        size_t size()
        bool empty()
        void clear()

    cdef cppclass Stream:
        int32_t id
        void* tag
        string head
        string trailers
        string data
        uint32_t error
        bool has_head
        bool is_over
        bool is_told
        bool is_closed
        bool has_room
        bool is_sent()

    cdef cppclass Session:
        Session(bool is_server, uint32_t most_streams) except +
        bool receive(const char* data, size_t count) except +
        bool send(Wire& wire, size_t most) except +
        Stream* next_news()
        void taken(Stream* stream)
        bool over()
        bool takes_requests()
        size_t streams()
        size_t unsent()
        size_t sent()
        vector[Stream*] all() except +
        void abandon()
        void say_goodbye()
        void tick()
        Stream* find(int32_t id)
        Stream* request(string_view block, string_view timeout) except +
        void respond(int32_t id, string_view block, bool is_last) except +
        bool write(int32_t id, object data) except +
        void finish(int32_t id, string_view trailers) except +
        void open_window(int32_t id)
        void reset(int32_t id, uint32_t error)


cdef class Receiver:
    cpdef received(self, bytes head, bytes data, bytes trailers, bint is_over)
    cpdef gone(self, uint32_t error)
    cpdef room(self)


cdef class Flusher:
    cdef object _loop
    cdef list _links
    cdef bint _is_scheduled
    cdef bytearray _buffer
    cdef char* _bytes
    cdef object _view
    cdef Wire _wire

    cdef add(self, Link link)


cdef class Link:
    cdef Session* _session
    cdef object _transport
    cdef Flusher _flusher
    cdef bint _is_server, _is_paused, _is_listed, _is_closing

    cdef flush(self)
    cdef _write(self)
    cdef _deliver(self)
    cdef _deliver_one(self, Stream* stream)
    cdef Receiver _begin(self, int32_t id, bytes head)
    cdef _release(self, Stream* stream)
    cpdef bint write(self, int32_t id, bytes data)
    cpdef finish(self, int32_t id, bytes trailers)
    cpdef open_window(self, int32_t id)
    cpdef cancel(self, int32_t id)
    cpdef say_goodbye(self)
    cpdef size_t streams(self)


cdef class ClientLink(Link):
    cdef public double active_s
    cdef object _owner

    cpdef respond(self, int32_t id, bytes head, bint is_last)
    cpdef size_t unread(self)
    cpdef Py_ssize_t left(self)


cdef class ServerLink(Link):
    cdef readonly object server
    cdef public double used_s
    cdef object _pool

    cpdef bint takes_requests(self)
    cpdef int32_t request(self, bytes head, bytes timeout, Receiver receiver)
