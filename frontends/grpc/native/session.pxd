"""Cython declarations of the C++ session: session.hpp and the headers that it includes."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libcpp cimport bool
from libcpp.string cimport string
from libcpp.vector cimport vector

cdef extern from "python_memory.hpp" namespace "core_grpc" nogil:
    cdef cppclass Memory:
        pass

    cdef cppclass PythonMemory(Memory):
        PythonMemory() except +


cdef extern from "python_host.hpp" namespace "core_grpc":
    cdef cppclass PythonHost:
        void connect(
            void* connection,
            int (*admit)(void*, int32_t, int32_t) noexcept,
            void* share,
            int (*take)(void*, size_t, string*) noexcept,
            void (*give)(void*, size_t) noexcept,
            void (*give_unpaid)(void*, size_t) noexcept,
        )


cdef extern from "session.hpp" namespace "core_grpc" nogil:
    const int64_t NEVER

    cdef enum Encoding:
        IDENTITY
        GZIP
        DEFLATE

    cdef enum Status:
        CANCELLED
        OK
        INTERNAL
        RESOURCE_EXHAUSTED
        UNAVAILABLE

    cdef cppclass Times:
        int64_t keepalive_ns
        int64_t keepalive_timeout_ns
        bool keepalive_without_calls
        int64_t most_pings_without_data
        int64_t least_ping_interval_ns
        int64_t most_ping_strikes
        int64_t age_ns
        int64_t age_grace_ns

    cdef cppclass Settings:
        Times times
        size_t most_message_bytes
        uint32_t most_streams
        int64_t message_timeout_ns

    cdef cppclass Methods:
        void add(const string& path, bool streams, bool guarded) except +

    cdef cppclass RequestHead:
        Encoding encoding
        uint8_t accepts
        bool wants_load
        string metadata

    cdef cppclass External:
        size_t at
        const char* data
        size_t size
        void* owner

    cdef cppclass Wire:
        string bytes
        vector[External] externals
        bool empty()
        void clear(Memory& memory)

    cdef enum class EventKind(uint8_t):
        request
        open
        message
        end
        gone
        room

    cdef cppclass Event:
        EventKind kind
        bool compressed
        int32_t id
        int32_t method
        void* object

    cdef cppclass Session:
        Session(const Settings&, const Methods&, Memory&, PythonHost&, int64_t now_ns) except +
        bool receive(const char* data, size_t count, int64_t now_ns) except +
        bool tick(int64_t now_ns) except +
        int64_t wake_ns()
        bool send(Wire& wire, size_t most) except +
        bool next_event(Event& event)
        bool over()
        size_t calls()
        bool is_open(int32_t id)
        const RequestHead* head(int32_t id)
        int64_t deadline_ns(int32_t id)
        void* tag(int32_t id)
        bool set_tag(int32_t id, void* tag)
        void* untag(int32_t id)
        void set_packing(int32_t id, Encoding packing)
        bool message(int32_t id, size_t size, bool compressed) except +
        void part(int32_t id, const char* data, size_t size, void* owner) except +
        bool push(int32_t id) except +
        void report_load(int32_t id, bool binary, const char* text, size_t size) except +
        void finish(int32_t id, int status, const char* text, size_t size) except +
        void taken(int32_t id, size_t size)
        bool hold(int32_t id, size_t size) except +
        void release(int32_t id, size_t size)
        const string& why_not()
        bool owe(int32_t id, size_t size)
        void pay(int32_t id, size_t size)
        void refuse_calls()
        void cut_off(int status, const char* text) except +
        void abandon() except +
