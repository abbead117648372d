# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
"""ModelInferRequest → InferenceRequest, without protobuf.

bytes ─► infer_message.hpp ─► [RequestReader] ─► InferenceRequest
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libcpp cimport bool as boolean
from libcpp.vector cimport vector

from core.dtypes cimport DataType
from core.request cimport InferenceRequest, RequestedOutput, new_request
from core.tensor cimport new_tensor
from frontends.grpc.native.repeated cimport MessageReader
from frontends.shared.native.decoding cimport name_of, shape_of, text_of

from core import dtypes
from core.request import SEQUENCE_END, SEQUENCE_START

cdef extern from "Python.h":
    object PySequence_GetSlice(object sequence, Py_ssize_t start, Py_ssize_t end)

cdef extern from "infer_message.hpp" namespace "infer" nogil:
    cdef cppclass Span:
        const char* data
        size_t size
        boolean starts_with(const char*)

    enum ParameterKind:
        kBoolParameter
        kInt64Parameter
        kStringParameter
        kDoubleParameter
        kUint64Parameter

    ctypedef int NativeDataType "infer::DataType"

    cdef cppclass Parameter:
        Span key
        uint32_t kind
        uint64_t bits
        Span text
        double number()

    cdef cppclass Contents:
        boolean present
        size_t size_as(NativeDataType)

    cdef cppclass Input:
        Span name
        NativeDataType type
        size_t first_dimension
        size_t dimension_count
        Contents contents
        Span raw

    cdef cppclass Output:
        Span name
        int64_t class_count

    cdef cppclass Run:
        pass

    cdef cppclass Request:
        Span model_name
        Span id
        int64_t model_version
        vector[Parameter] parameters
        vector[Input] inputs
        vector[Output] outputs
        vector[int64_t] dimensions
        vector[Run] runs

    cdef cppclass NativeRequestReader "infer::RequestReader":
        NativeRequestReader(Request&)
        boolean read(Span) except +

    cdef cppclass ContentsWriter:
        ContentsWriter(char*, NativeDataType)
        void write(const Contents&, const vector[Run]&)

    size_t place_of(Span, size_t)


cdef enum:
    # A copy of few bytes is faster than a view, which would keep the whole message in memory.
    LARGEST_COPIED_INPUT = 512
    NAMES = 64  # size of the cache of names, a power of two
    LONGEST_NAME = 64  # bytes of a name in the cache

cdef tuple _DATATYPES = dtypes.ALL  # the order is that of infer::DataType
cdef int _START = SEQUENCE_START
cdef int _END = SEQUENCE_END


cdef class RequestReader(MessageReader):
    """Parses encoded ModelInferRequests, with a cache of names and of repeated messages."""

    cdef Request _message
    cdef list _names  # str or None at each place

    def __cinit__(self):
        self._names = [None] * NAMES

    cdef read_anew(self, bytes data, ledger):
        """Return the request in `data`; None if protobuf's decoder must read it. Raises MemoryExhausted."""
        cdef Span span
        cdef Request* message = &self._message
        span.data = PyBytes_AS_STRING(data)
        span.size = <size_t>PyBytes_GET_SIZE(data)
        if not NativeRequestReader(message[0]).read(span):
            return None
        cdef dict inputs = self._inputs(data, ledger)
        cdef tuple outputs = ()
        if message.outputs.size():
            outputs = self._outputs()
        # The decoder with protobuf refuses repeated names.
        if outputs is None or <size_t>len(inputs) != message.inputs.size():
            return None
        # Set attributes instead of keyword arguments, which would need a dict for each call.
        cdef InferenceRequest request = new_request(self._name(message.model_name), inputs)
        if message.model_version >= 0:
            request.model_version = message.model_version
        if message.id.size:
            request.id = text_of(message.id.data, message.id.size)
        if message.outputs.size():
            request.outputs = outputs
        if message.parameters.size() and not self._set_parameters(request):
            return None
        self.keep(data, request, self._starts(data))
        return request

    cdef list _starts(self, bytes data):
        """Return the position in `data` of each input's bytes; None for an input that is empty or not raw."""
        cdef list starts = []
        cdef Input* entry
        cdef size_t i
        for i in range(self._message.inputs.size()):
            entry = &self._message.inputs[i]
            if entry.contents.present or entry.raw.size == 0:
                starts.append(None)
            else:
                starts.append(entry.raw.data - PyBytes_AS_STRING(data))
        return starts

    cdef str _name(self, Span span):
        """Return the str of a name. Names up to LONGEST_NAME bytes come from a cache if possible."""
        if span.size == 0 or span.size > LONGEST_NAME:
            return text_of(span.data, span.size)
        return name_of(self._names, place_of(span, NAMES), span.data, span.size)

    cdef dict _inputs(self, bytes data, ledger):
        cdef dict inputs = {}
        cdef Input* entry
        cdef size_t i
        view = None
        for i in range(self._message.inputs.size()):
            entry = &self._message.inputs[i]
            name = self._name(entry.name)
            if entry.contents.present:
                raw = self._typed(entry, ledger)
            elif entry.raw.size <= LARGEST_COPIED_INPUT:
                raw = PyBytes_FromStringAndSize(entry.raw.data, <Py_ssize_t>entry.raw.size)
            else:
                if view is None:
                    view = memoryview(data)
                start = entry.raw.data - PyBytes_AS_STRING(data)
                raw = PySequence_GetSlice(view, start, start + <Py_ssize_t>entry.raw.size)
            shape = shape_of(self._message.dimensions.data() + entry.first_dimension, entry.dimension_count)
            inputs[name] = new_tensor(name, <DataType>_DATATYPES[<int>entry.type], shape, raw, None)
        return inputs

    cdef bytes _typed(self, Input* entry, ledger):
        cdef Py_ssize_t size = <Py_ssize_t>entry.contents.size_as(entry.type)
        if size > LARGEST_COPIED_INPUT and ledger is not None:
            ledger.hold(size, "a tensor")
            self.held += size
        cdef bytes raw = PyBytes_FromStringAndSize(NULL, size)
        ContentsWriter(PyBytes_AS_STRING(raw), entry.type).write(
            entry.contents, self._message.runs
        )
        return raw

    cdef tuple _outputs(self):
        """Return the requested outputs; None if a name is repeated."""
        cdef size_t i, count = self._message.outputs.size()
        cdef list outputs = []
        cdef set names = set()
        cdef Output* entry
        for i in range(count):
            entry = &self._message.outputs[i]
            name = self._name(entry.name)
            names.add(name)
            outputs.append(RequestedOutput(name, entry.class_count))
        return tuple(outputs) if <size_t>len(names) == count else None

    cdef bint _set_parameters(self, InferenceRequest request) except -1:
        """Set the parameters of `request`. Return False if protobuf's decoder must read them, as for a wrong
        type. Of equal names the last one wins.
        """
        cdef size_t i
        for i in range(self._message.parameters.size()):
            if not self._set_parameter(request, &self._message.parameters[i]):
                return False
        return True

    cdef bint _set_parameter(self, InferenceRequest request, Parameter* parameter) except -1:
        cdef str name = self._name(parameter.key)
        if parameter.key.starts_with(b"triton_"):
            return False
        if name == "sequence_id":
            if parameter.kind == kInt64Parameter:
                request.correlation_id = parameter.bits
            elif parameter.kind == kStringParameter:
                request.correlation_id = text_of(parameter.text.data, parameter.text.size)
            else:
                return False
        elif name == "sequence_start":
            return self._set_flag(request, _START, parameter)
        elif name == "sequence_end":
            return self._set_flag(request, _END, parameter)
        elif name == "priority":
            if parameter.kind == kInt64Parameter:
                if <int64_t>parameter.bits < 0:
                    return False
            elif parameter.kind != kUint64Parameter:
                return False
            request.priority = parameter.bits
        elif name == "timeout":
            if parameter.kind != kInt64Parameter:
                return False
            request.timeout_us = parameter.bits
        else:
            return self._set_custom(request, name, parameter)
        return True

    cdef bint _set_flag(self, InferenceRequest request, int flag, Parameter* parameter) except -1:
        if parameter.kind != kBoolParameter:
            return False
        if parameter.bits:
            request.flags |= flag
        else:
            request.flags &= ~flag
        return True

    cdef bint _set_custom(self, InferenceRequest request, str name, Parameter* parameter) except -1:
        if parameter.kind == kBoolParameter:
            value = True if parameter.bits else False
        elif parameter.kind == kInt64Parameter:
            value = <int64_t>parameter.bits
        elif parameter.kind == kStringParameter:
            value = text_of(parameter.text.data, parameter.text.size)
        elif parameter.kind == kDoubleParameter:
            value = parameter.number()
        else:
            return False
        request.parameters[name] = value
        return True
