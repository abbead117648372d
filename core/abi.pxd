"""Cython declarations of core_abi.h, for native backends in Cython. The comments are in core_abi.h."""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t


cdef extern from "core_abi.h" nogil:
    enum:
        CORE_ABI_VERSION
        CORE_MOST_DIMENSIONS
        CORE_OK, CORE_INTERNAL, CORE_NOT_FOUND, CORE_INVALID, CORE_UNAVAILABLE, CORE_UNSUPPORTED
        CORE_ALREADY_EXISTS, CORE_CANCELLED, CORE_UNKNOWN, CORE_FATAL
        CORE_BOOL, CORE_UINT8, CORE_UINT16, CORE_UINT32, CORE_UINT64, CORE_INT8, CORE_INT16, CORE_INT32
        CORE_INT64, CORE_FP16, CORE_FP32, CORE_FP64, CORE_BYTES, CORE_BF16
        CORE_CPU, CORE_CUDA, CORE_CUDA_HOST
        CORE_TEXT, CORE_INTEGER, CORE_BOOLEAN, CORE_NUMBER
        CORE_SEQUENCE_START, CORE_SEQUENCE_END
        CORE_NOT_GATHERED
        CORE_COUNTER, CORE_GAUGE, CORE_HISTOGRAM
        CORE_LOG_VERBOSE, CORE_LOG_INFO, CORE_LOG_WARNING, CORE_LOG_ERROR
    const char* CORE_INSTANCE_CAPSULE

    bint CORE_HAS(...)

    ctypedef struct core_tensor:
        const char* name
        const void* data
        const int64_t* shape
        uint64_t byte_size
        int32_t dtype
        int32_t dimensions
        int32_t device_kind
        int32_t device_id

    ctypedef struct core_parameter:
        const char* name
        const char* text
        int64_t integer
        double number
        int32_t kind

    ctypedef struct core_request:
        int64_t first_row
        int64_t rows
        const core_tensor* inputs
        int64_t deadline_ns
        const int* cancelled
        uint32_t flags

    ctypedef struct core_details:
        uint32_t struct_size
        int32_t parameter_count
        int32_t output_count
        const char* id
        uint64_t correlation_id
        const char* correlation_text
        uint64_t priority
        uint64_t timeout_us
        const core_parameter* parameters
        const char* const* outputs

    ctypedef struct core_answer:
        pass

    ctypedef struct core_metric:
        pass

    ctypedef struct core_batch:
        uint32_t struct_size
        int32_t request_count
        int32_t input_count
        int32_t has_rows
        int64_t rows
        const core_tensor* inputs
        const core_request* requests
        core_answer* all
        const core_calls* core
        int64_t compute_start_ns
        int64_t compute_end_ns

    ctypedef struct core_instance:
        uint32_t abi_version
        uint32_t struct_size
        uint64_t flags
        void* self
        int32_t (*execute)(void* self, core_batch* batch, char* error, size_t error_size) noexcept nogil
        void (*attach)(void* self, const core_calls* core) noexcept

    ctypedef struct core_calls:
        uint32_t abi_version
        uint32_t struct_size
        void* (*output)(core_answer*, const char* name, int32_t dtype, const int64_t* shape,
                        int32_t dimensions, uint64_t byte_size) noexcept nogil
        int32_t (*give)(core_answer*, const char* name, int32_t dtype, const int64_t* shape,
                        int32_t dimensions, const void* data, uint64_t byte_size,
                        void (*release)(void*) noexcept nogil, void* argument) noexcept nogil
        int32_t (*parameter)(core_answer*, const core_parameter*) noexcept nogil
        int32_t (*fail)(core_answer*, int32_t kind, const char* text) noexcept nogil
        core_answer* (*one)(core_batch*, int32_t request) noexcept nogil
        core_answer* (*later)(core_batch*, int32_t request) noexcept nogil
        int32_t (*send)(core_answer*, int32_t final) noexcept nogil
        void (*release)(core_answer*) noexcept nogil
        int32_t (*has_room)(const core_answer*) noexcept nogil
        int32_t (*is_cancelled)(const core_answer*) noexcept nogil
        int32_t (*reschedule)(core_batch*, int32_t request) noexcept nogil
        const core_details* (*details)(core_batch*, int32_t request) noexcept nogil
        int64_t (*now_ns)() noexcept nogil
        void (*log)(int32_t level, const char* text) noexcept nogil
        core_metric* (*metric)(int32_t kind, const char* name, const char* help,
                               const core_parameter* labels, int32_t label_count,
                               const double* buckets, int32_t bucket_count) noexcept nogil
        int32_t (*metric_add)(core_metric*, double value) noexcept nogil
        int32_t (*metric_set)(core_metric*, double value) noexcept nogil
        void (*metric_release)(core_metric*) noexcept nogil

    const core_tensor* core_input(const core_batch* batch, const char* name)
    uint64_t core_element_size(int32_t dtype)
    bint core_next_bytes(const char** at, const char* end, const char** element, uint32_t* size)
