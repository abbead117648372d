# distutils: language = c++
# cython: boundscheck=False, wraparound=False
"""Executes batches on native backends, with one call without the GIL.

Code without Python (gathering, checks of outputs, memory) is in execution/*.hpp. Functions that backends call and
that need Python are in callbacks.pyx, which other modules import.
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from cpython.pycapsule cimport PyCapsule_GetPointer
from libcpp.memory cimport make_shared

from core.abi cimport CORE_CPU, CORE_FATAL, CORE_INSTANCE_CAPSULE, CORE_NOT_GATHERED, CORE_OK
from core.config.signature cimport InputSpec, Signature
from core.dtypes cimport DataType
from core.native.contract cimport ModelContract
from core.native.outputs cimport OutputMemory, error_of, memory, parameters_of
from core.request cimport InferenceRequest, RequestedOutput
from core.tensor cimport Tensor, new_tensor

from core.errors import CoreError, internal

cdef enum:
    # Below this size a copy is cheaper than an object that refers to the owner of the memory.
    COPIED_UP_TO = 4096

cdef core_calls _table = calls_without_python()  # callbacks.pyx adds the others


cdef core_calls* table() noexcept:
    """Return the table of functions that backends may call. Its address never changes."""
    return &_table


@cython.final
cdef class NativeExecutor:
    """Callable that executes and answers batches on a native instance. Call it on the instance's thread."""

    def __init__(self, capsule):
        self._capsule = capsule
        self._native = <core_instance*>PyCapsule_GetPointer(capsule, CORE_INSTANCE_CAPSULE)
        self._pool = make_shared[Pool]()

    def __call__(self, Batch batch not None):
        if self._contract is None or batch.signature is not self._contract.signature:
            self._contract = ModelContract(batch.signature)
            self._free = None
        cdef NativeCall call = self._free
        self._free = None
        if call is None:
            call = NativeCall.__new__(NativeCall)
            call.contract = self._contract
            call.execution = new Execution(self._contract.native, self._pool, table())
            call.execution.owner = <void*>call
        call.executing = True
        try:
            self._run(call, batch)
        finally:
            call.executing = False
            if not call.senders:
                call.clear()
                self._free = call

    cdef _run(self, NativeCall call, Batch batch):
        cdef Execution* execution = call.execution
        cdef core_instance* native = self._native
        cdef int32_t status = CORE_OK
        cdef string text
        cdef bint fits
        cdef int64_t start_ns
        call.fill(batch)
        with nogil:
            fits = execution.gather(call.ragged, not native.flags & CORE_NOT_GATHERED, &text)
            start_ns = now_ns()
            if fits:
                status = execution.run(native[0], &text)
        if not fits:
            raise internal(text.decode("utf-8", "replace"))
        batch.compute_end_ns = _between(batch.start_ns, execution.compute_end_ns, now_ns())
        batch.compute_start_ns = _between(
            batch.start_ns, execution.compute_start_ns or start_ns, batch.compute_end_ns
        )
        call.deliver(status == CORE_OK)
        if status != CORE_OK:
            raise error_of(status, text, self._contract.model)


cdef int64_t _between(int64_t least, int64_t wanted, int64_t most) noexcept:
    """Return `wanted`, a time from a backend, if it is from `least` to `most`; else `most`. All in ns."""
    return wanted if least <= wanted <= most else most


@cython.final
cdef class NativeCall:
    """One batch that a native backend executes, until all of its responses are sent.

    While it executes, its thread alone uses it, but answers of `later` come from any, with the GIL. Invariants:
    1. `buffers` are held from fill until clear: as long as a backend may read the memory.
    2. It takes another batch only when it neither executes nor has `senders` (objects that respond later).
    """

    def __dealloc__(self):
        self.clear()
        PyMem_Free(self.buffers)
        del self.execution

    cdef clear(self):
        cdef Py_ssize_t i
        for i in range(self.held):
            PyBuffer_Release(&self.buffers[i])
        self.held = 0
        if self.execution != NULL:
            self.execution.begin(0, 0)
        self.batch = None
        self.details = None

    cdef int fill(self, Batch batch) except -1:
        """Write the batch into `execution`, which the backend reads; acquire the buffers of its inputs."""
        cdef list requests = batch.requests
        cdef Py_ssize_t n = len(requests), needed
        cdef InferenceRequest request = requests[0]
        cdef Signature signature = batch.signature
        cdef InputSpec spec
        cdef list names = self.contract.inputs
        cdef int32_t i
        cdef int64_t row = 0
        cdef char ragged
        if len(request.inputs) != len(names) or any([name not in request.inputs for name in names]):
            names = [name for name in names if name in request.inputs]
            names += [name for name in request.inputs if name not in signature.inputs]
        self.batch = batch
        self.alone = n == 1
        needed = n * len(names) + 1
        if self.room < needed:
            self.buffers = <Py_buffer*>PyMem_Realloc(self.buffers, needed * sizeof(Py_buffer))
            if self.buffers == NULL:
                self.room = 0
                raise MemoryError()
            self.room = needed
        self.execution.begin(<int32_t>n, <int32_t>len(names))
        self.execution.rows = batch.rows
        self.ragged.clear()
        for name in names:
            spec = signature.inputs.get(name)
            ragged = spec is not None and spec.ragged
            self.ragged.push_back(ragged)
        for i in range(<int32_t>n):
            self._fill_request(i, names)
            self.execution.request(i).first_row = row
            row += self.execution.request(i).rows
        return 0

    cdef int _fill_request(self, int32_t i, list names) except -1:
        cdef InferenceRequest request = self.batch.requests[i]
        cdef core_request* seen = &self.execution.request(i)
        cdef core_tensor* piece
        cdef Tensor tensor
        cdef int64_t* shape
        cdef int32_t k, dimensions
        seen.rows = request.rows
        seen.deadline_ns = request.deadline_ns
        seen.cancelled = <const int*>&request.cancelled
        seen.flags = request.flags
        for k in range(<int32_t>len(names)):
            name = names[k]
            tensor = request.inputs[name]
            piece = &self.execution.piece(i, k)
            piece.name = PyUnicode_AsUTF8(name)
            piece.dtype = tensor.dtype.number
            piece.device_kind = CORE_CPU
            dimensions = <int32_t>len(tensor.shape)
            piece.dimensions = dimensions
            shape = self.execution.shape(dimensions)
            piece.shape = shape
            for dim in tensor.shape:
                shape[0] = dim
                shape += 1
            self._hold(tensor._raw if tensor._raw is not None else tensor.raw, piece)
        if request.shared and request.outputs:
            self._fill_targets(i, request)
        return 0

    cdef int _hold(self, raw, core_tensor* tensor) except -1:
        cdef Py_buffer* buffer = &self.buffers[self.held]
        PyObject_GetBuffer(raw, buffer, PyBUF_SIMPLE)
        self.held += 1
        tensor.data = buffer.buf if buffer.len else NULL
        tensor.byte_size = <uint64_t>buffer.len
        return 0

    def _fill_targets(self, int32_t i, InferenceRequest request):
        """Register the client's host memory for outputs of request `i`: the backend may write into it."""
        cdef RequestedOutput output
        cdef Target target
        cdef Py_buffer buffer
        if request.cancelled:
            return
        for output in request.outputs:
            if output.memory is None or output.class_count or output.name not in self.contract.outputs:
                continue
            if type(output.memory) is not memoryview:
                continue  # on a device: `place` copies the output later
            # The request keeps the memoryview, which keeps the buffer.
            PyObject_GetBuffer(output.memory, &buffer, PyBUF_SIMPLE)
            target.request = i
            target.output = self.contract.outputs.index(output.name)
            target.data = <char*>buffer.buf
            target.size = <uint64_t>buffer.len
            PyBuffer_Release(&buffer)
            self.execution.targets.push_back(target)

    cdef deliver(self, bint succeeded):
        """Pass the backend's own answers, reschedules and, after success, batch->all to the batch."""
        cdef Execution* execution = self.execution
        cdef Answer* answer
        cdef int32_t i, n = <int32_t>len(self.batch.requests)
        cdef bint whole = succeeded and execution.together().touched
        cdef bint own = False
        cdef size_t r
        for i in range(n):
            answer = execution.own(i)
            if answer != NULL:
                own = True
                if not answer.is_later:
                    self.respond(answer, i, True)
        for r in range(execution.rescheduled().size()):
            self.batch.reschedule(execution.rescheduled()[r])
        if whole:
            parts = self._split()
            if not own:
                self.batch.respond_all(parts)
            else:
                for i in range(n):
                    if execution.own(i) == NULL:
                        self.batch.respond(i, parts[i])
        elif self.contract.decoupled and succeeded:
            for i in range(n):
                if execution.own(i) == NULL:  # the request gets no response
                    self.batch.finish(i)

    cdef _split(self):
        """Return, for each request, a list of tensors: its rows of the outputs in batch->all."""
        cdef Answer* answer = &self.execution.together()
        cdef list requests = self.batch.requests, found
        cdef Py_ssize_t n = len(requests), i
        cdef InferenceRequest request
        cdef Output* output
        cdef OutputMemory whole
        cdef DataType dtype
        cdef size_t o
        cdef uint64_t start, size
        cdef tuple rest
        if n == 1:
            return [self.tensors(answer, 0)]
        found = [[] for _ in range(n)]
        for o in range(answer.outputs.size()):
            output = &answer.outputs[o]
            if not self.execution.offsets(output[0], &self.offsets):
                raise self._malformed(output.index)
            name = self.contract.outputs[output.index]
            dtype = self.contract.dtypes[output.index]
            rest = _shape(output)[1:]
            whole = None
            for i in range(n):
                request = requests[i]
                start = self.offsets[i]
                size = self.offsets[i + 1] - start
                if size <= COPIED_UP_TO:
                    raw = PyBytes_FromStringAndSize(output.data + start, <Py_ssize_t>size)
                else:
                    if whole is None:
                        whole = memory(output.block.release(), None, output.data, output.size)
                    raw = memory(NULL, whole, output.data + start, size)
                (<list>found[i]).append(new_tensor(name, dtype, (request.rows, *rest), raw, None))
        return found

    def _malformed(self, int32_t index):
        return internal(
            f"model '{self.contract.model}' gave output '{self.contract.outputs[index]}' with bytes that are "
            "not the elements which its shape says: each is a uint32 length and so many bytes"
        )

    cdef list tensors(self, Answer* answer, int32_t request):
        """Return the tensors of the outputs in `answer`. Raise CoreError(INTERNAL) for invalid BYTES."""
        cdef Output* output
        cdef list found = []
        cdef size_t o
        for o in range(answer.outputs.size()):
            output = &answer.outputs[o]
            if not core_element_size((<DataType>self.contract.dtypes[output.index]).number):
                if not _is_bytes(output):
                    raise self._malformed(output.index)
            found.append(new_tensor(
                self.contract.outputs[output.index], self.contract.dtypes[output.index], _shape(output),
                self.raw_of(output, request), None,
            ))
        return found

    cdef raw_of(self, Output* output, int32_t request):
        cdef InferenceRequest asked
        cdef RequestedOutput wanted
        if output.target != NULL:
            asked = self.batch.requests[request]
            for wanted in asked.outputs:
                if wanted.name == self.contract.outputs[output.index]:
                    return wanted.memory[: output.size]
        if output.size <= COPIED_UP_TO:
            return PyBytes_FromStringAndSize(output.data, <Py_ssize_t>output.size)
        return memory(output.block.release(), None, output.data, output.size)

    cdef respond(self, Answer* answer, int32_t request, bint final):
        """Pass the outputs or the error in `answer` to the batch, for one request; then clear `answer`."""
        if not answer.failed:
            try:
                self.batch.respond(
                    request, self.tensors(answer, request), parameters_of(answer.parameters), final=final
                )
            except CoreError as error:
                self.batch.fail(request, error, final=final)
        else:
            self.batch.fail(
                request, error_of(answer.failed, answer.text, self.contract.model), final=final
            )
        answer.clear()


cdef tuple _shape(Output* output):
    cdef int32_t i
    return tuple([output.shape[i] for i in range(output.dimensions)])


cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8(object text) except NULL

cdef extern from "core_abi.h" nogil:
    uint64_t core_element_size(int32_t dtype)

cdef extern from *:
    """
    #include "execution/calls.hpp"
    static bool crossing_is_bytes(const core_native::Output* output) {
      const int64_t count = core_native::elements(output->shape, output->dimensions);
      return core_native::bytes_of(output->data, output->size, count) == static_cast<int64_t>(output->size);
    }
    """
    bint _is_bytes "crossing_is_bytes"(const Output* output) nogil
