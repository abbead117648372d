"""The parsed JSON of a request: declarations of infer_description.hpp, infer_request.hpp and lease.hpp."""

from libc.stdint cimport int64_t, uint64_t
from libcpp cimport bool as boolean
from libcpp.vector cimport vector

cdef extern from "infer_description.hpp" namespace "http_json" nogil:
    ctypedef int NativeDataType "http_json::DataType"

    ctypedef int Source
    const Source kData "http_json::Source::kData"
    const Source kBinary "http_json::Source::kBinary"

    ctypedef int Kind
    const Kind kText "http_json::Kind::kText"
    const Kind kInteger "http_json::Kind::kInteger"
    const Kind kReal "http_json::Kind::kReal"

    cdef cppclass Text:
        const char* data
        size_t size

    cdef cppclass Place:
        Text region
        uint64_t offset
        uint64_t byte_size

    cdef cppclass Input:
        Text name
        NativeDataType type
        size_t first_dimension
        size_t dimension_count
        Source source
        uint64_t size
        void* memory
        Text numbers
        Text shape
        Text binary_size
        Place place

    cdef cppclass Output:
        Text name
        boolean binary
        uint64_t class_count
        boolean shared
        Place place

    cdef cppclass Parameter:
        Text key
        Kind kind
        Text text
        int64_t integer
        double real

    cdef cppclass Request:
        Text id
        boolean sequence_named
        Text sequence_name
        uint64_t sequence_id
        boolean sequence_start
        boolean sequence_end
        uint64_t priority
        uint64_t timeout_us
        boolean binary_output
        vector[Parameter] parameters
        vector[Input] inputs
        vector[int64_t] dimensions
        vector[Output] outputs

cdef extern from "lease.hpp" namespace "http_json" nogil:
    cdef cppclass Lease[Scratch]:
        Lease() except +
        Scratch* get()

cdef extern from "infer_request.hpp" namespace "http_json" nogil:
    ctypedef char* (*Take)(void*, size_t, void**) noexcept nogil

    cdef cppclass Memory:
        Take take
        void* context

    cdef cppclass RequestReader:
        RequestReader(const char*, size_t, uint64_t, Memory, Request&)
        boolean read() except +
