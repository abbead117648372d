from libc.stdint cimport int32_t, int64_t, uint64_t
from libcpp cimport bool as cbool
from libcpp.memory cimport shared_ptr
from libcpp.string cimport string
from libcpp.vector cimport vector

from core.abi cimport core_answer, core_batch, core_calls, core_details, core_instance, core_request, core_tensor
from core.batch cimport Batch
from core.native.contract cimport Contract, ModelContract
from core.native.outputs cimport Block, Parameter


cdef extern from "execution/calls.hpp" namespace "core_native" nogil:
    cppclass Pool:
        pass

    cppclass OwnedBlock "std::unique_ptr<core_native::Block>":
        Block* get()
        Block* release()

    cppclass Target:
        int32_t request
        int32_t output
        char* data
        uint64_t size

    cppclass Output:
        int32_t index
        int32_t dimensions
        int64_t* shape
        char* data
        uint64_t size
        const Target* target
        OwnedBlock block

    cppclass Answer "core_answer":
        cbool touched
        cbool is_later
        cbool ended
        int32_t request
        int32_t failed
        string text
        vector[Output] outputs
        vector[Parameter] parameters
        void* owner
        vector[const int*] held
        void clear()

    cppclass Execution:
        vector[Target] targets
        void* owner
        int64_t rows
        int64_t compute_start_ns
        int64_t compute_end_ns
        Execution(shared_ptr[Contract], shared_ptr[Pool], const core_calls*) except +
        void begin(int32_t count, int32_t kinds) except +
        core_request& request(int32_t i)
        core_tensor& piece(int32_t i, int32_t k)
        int64_t* shape(int32_t dimensions) except +
        cbool gather(vector[char]& ragged, cbool copied, string* why) except +
        int32_t run(const core_instance& instance, string* text) except +
        Answer& together()
        Answer* own(int32_t i)
        Answer* later(int32_t i) except +
        const vector[int32_t]& rescheduled()
        cbool offsets(const Output& output, vector[uint64_t]* found) except +

    core_calls calls_without_python()
    int64_t now_ns()

cdef extern from "execution/details.hpp" namespace "core_native" nogil:
    cppclass Details:
        string id_
        string correlation_
        uint64_t correlation_id
        uint64_t priority
        uint64_t timeout_us
        vector[string] outputs_
        void add(const string& name, int32_t kind, const string& text, int64_t integer, double number) except +
        const core_details* finish() except +


cdef core_calls* table() noexcept


cdef class NativeExecutor:
    cdef object _capsule
    cdef core_instance* _native
    cdef shared_ptr[Pool] _pool
    cdef ModelContract _contract
    cdef NativeCall _free

    cdef _run(self, NativeCall call, Batch batch)


cdef class NativeCall:
    cdef ModelContract contract
    cdef Batch batch
    cdef Execution* execution
    cdef Py_buffer* buffers
    cdef Py_ssize_t room
    cdef Py_ssize_t held
    cdef vector[char] ragged
    cdef vector[uint64_t] offsets
    cdef Py_ssize_t senders
    cdef bint executing
    cdef dict details
    cdef bint alone

    cdef int fill(self, Batch batch) except -1
    cdef int _fill_request(self, int32_t i, list names) except -1
    cdef int _hold(self, raw, core_tensor* tensor) except -1
    cdef deliver(self, bint succeeded)
    cdef _split(self)
    cdef list tensors(self, Answer* answer, int32_t request)
    cdef raw_of(self, Output* output, int32_t request)
    cdef respond(self, Answer* answer, int32_t request, bint final)
    cdef clear(self)
