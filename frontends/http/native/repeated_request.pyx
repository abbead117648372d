# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
"""RepeatedRequest: fast parsing of similar requests.

body ─► [RepeatedRequest] ─► InferenceRequest

slots.hpp parses the variable parts. The numbers of tensors have the parser of other requests, so that both
have the same rules. All other requests are parsed completely (infer_request.pyx).
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_DecodeASCII
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcmp

from core.config.signature cimport InputSpec, Signature
from core.native.arrays cimport length
from core.request cimport InferenceRequest
from core.tensor cimport Tensor, new_tensor
from frontends.http.native.infer_json cimport Input, Lease, Memory, Request, RequestReader, Text, kBinary, kData
from frontends.http.native.infer_request cimport (
    COPIED_UP_TO, MOST_DIMENSIONS, OutputForm, part_of_body, take_elements,
)
from frontends.shared.native.decoding cimport shape_of

from math import prod

cdef extern from "tensor_data.hpp" namespace "http_json" nogil:
    ctypedef int NativeDataType "http_json::DataType"

    const char* read_numbers(const char*, const char*, NativeDataType, size_t, char*)

cdef extern from "slots.hpp" namespace "http_json" nogil:
    const char* take_text(const char*, const char*, const char*, size_t)
    const char* take_natural(const char*, const char*, int64_t&)
    const char* take_shape(const char*, const char*, int64_t*, size_t, uint64_t&)
    const char* take_plain(const char*, const char*)
    const uint64_t kMostElements

cdef enum SlotKind:
    # A part of a request's JSON that may differ in the next one: the characters of its id, the shape of an
    # input, its binary_data_size, the list of its numbers.
    ID
    SHAPE
    SIZE
    DATA

cdef object MOST_ELEMENTS = <uint64_t>kMostElements


@cython.final
cdef class RepeatedRequest:
    """A parsed request, for bodies whose JSON differs only in id, shapes, sizes and numbers."""

    cdef InferenceRequest again(
        self, object body, const char* data, Py_ssize_t whole, Py_ssize_t json_size, uint64_t most_bytes
    ):
        if (
            whole == self._size
            and json_size == PyBytes_GET_SIZE(self._json)
            and not memcmp(data, PyBytes_AS_STRING(self._json), json_size)
        ):
            return self._with(self._request.id, self._same_inputs(body, data))
        return self._like(body, data, whole, json_size, most_bytes)

    cdef InferenceRequest _like(
        self, object body, const char* data, Py_ssize_t whole, Py_ssize_t json_size, uint64_t most_bytes
    ):
        """Return the request in a body whose JSON differs only in its slots; else None."""
        cdef const char* at = data
        cdef const char* end = data + json_size
        cdef const char* begin
        cdef const char* kinds = PyBytes_AS_STRING(self._kinds)
        cdef Py_ssize_t i, input = 0, offset = json_size, count
        cdef int64_t[MOST_DIMENSIONS] sizes
        cdef int64_t size = 0
        cdef uint64_t elements = 0
        cdef char kind
        cdef str id = self._request.id
        cdef dict inputs = {}
        cdef tuple shape = None
        cdef Tensor like = None
        cdef bytes text
        cdef bytes raw
        count = PyBytes_GET_SIZE(self._kinds)
        for i in range(count):
            text = <bytes>self._texts[i]
            at = take_text(at, end, PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text))
            if at == NULL:
                return None
            kind = kinds[i]
            if kind == SHAPE:
                like = <Tensor>self._tensors[input]
                shape = like.shape
                text = <bytes>self._shapes[input]
                begin = take_text(at, end, PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text))
                if begin != NULL:
                    at = begin
                    elements = <uint64_t>self._counts[input]
                else:
                    at = take_shape(at, end, sizes, len(shape), elements)
                    if at == NULL:
                        return None
                    shape = shape_of(sizes, len(shape))
                input += 1
            elif kind == SIZE:
                at = take_natural(at, end, size)
                if at == NULL or size > whole - offset:
                    return None
                inputs[like.name] = new_tensor(
                    like.name, like.dtype, shape, _part(body, data, offset, size), None
                )
                offset += size
            elif kind == DATA:
                # Limit the elements by the length of the text: a shape alone must not allocate memory.
                if not 0 < elements <= <uint64_t>(end - at) or elements > most_bytes // like.dtype.byte_size:
                    return None
                raw = PyBytes_FromStringAndSize(NULL, elements * <uint64_t>like.dtype.byte_size)
                # The order is the order of DataType, but the enum of the configuration begins with 1.
                at = read_numbers(
                    at, end, <NativeDataType>(like.dtype.number - 1), elements, PyBytes_AS_STRING(raw)
                )
                if at == NULL:
                    return None
                inputs[like.name] = new_tensor(like.name, like.dtype, shape, raw, None)
            else:
                begin = at
                at = take_plain(at, end)
                if at == NULL:
                    return None
                id = PyUnicode_DecodeASCII(begin, at - begin, NULL)
        text = <bytes>self._texts[count]
        if take_text(at, end, PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text)) != end or offset != whole:
            return None
        return self._with(id, inputs)

    cdef dict _same_inputs(self, object body, const char* data):
        """Return the inputs by name, all binary, of a body with identical JSON."""
        cdef Py_ssize_t i, size, offset = PyBytes_GET_SIZE(self._json)
        cdef dict inputs = {}
        cdef Tensor like
        for i in range(len(self._tensors)):
            like = <Tensor>self._tensors[i]
            size = self._sizes[i]
            inputs[like.name] = new_tensor(
                like.name, like.dtype, like.shape, _part(body, data, offset, size), None
            )
            offset += size
        return inputs

    cdef InferenceRequest _with(self, str id, dict inputs):
        """Return a copy of the request with another id and other inputs."""
        cdef InferenceRequest request = self._request.copy_with(inputs)
        request.id = id
        return request


cdef inline object _part(object body, const char* data, Py_ssize_t at, Py_ssize_t size):
    """Return a part of a body: a copy if it is small or `body` is bytes, else a view."""
    if size <= COPIED_UP_TO or type(body) is bytes:
        return PyBytes_FromStringAndSize(data + at, size)
    return part_of_body(body, at, size)


cdef list _slots_of(bytes json, uint64_t most_bytes):
    """Return the slots of a JSON text, sorted: (begin, end, kind).

    Return None if an input is neither binary nor has numbers, or has data before its shape, and for JSON that
    RequestReader does not accept.
    """
    cdef Lease[Request] lease
    cdef Request* found = lease.get()
    cdef list taken = [], slots = []
    cdef Memory memory
    cdef const char* begin = PyBytes_AS_STRING(json)
    cdef Input* one
    cdef size_t i
    memory.context = <void*>taken
    memory.take = take_elements
    if not RequestReader(begin, PyBytes_GET_SIZE(json), most_bytes, memory, found[0]).read():
        return None
    for i in range(found.inputs.size()):
        one = &found.inputs[i]
        slots.append(_slot(begin, one.shape, SHAPE))
        if one.source == kBinary:
            slots.append(_slot(begin, one.binary_size, SIZE))
        elif one.source == kData and one.numbers.size:
            slots.append(_slot(begin, one.numbers, DATA))
        else:
            return None
    if slots != sorted(slots):
        return None
    # An id with escapes is decoded elsewhere, so that it has no slot.
    if found.id.size and begin <= found.id.data < begin + PyBytes_GET_SIZE(json):
        slots.append(_slot(begin, found.id, ID))
    return sorted(slots)


cdef tuple _slot(const char* begin, Text text, SlotKind kind):
    return text.data - begin, text.data - begin + <Py_ssize_t>text.size, <int>kind


cdef str _name_in(Signature signature, str name):
    """Return the equal name in the signature: lookups with that str compare no text. Else return `name`."""
    cdef InputSpec spec = signature.inputs.get(name)
    return name if spec is None else spec.name


cdef RepeatedRequest repeated_request(
    InferenceRequest request, OutputForm form, bytes json, uint64_t most_bytes, Signature signature
):
    cdef RepeatedRequest found
    cdef Tensor tensor
    cdef list slots, texts = [], kinds = [], shapes = []
    cdef Py_ssize_t behind = 0
    if request.shared or request._parameters:
        return None
    for tensor in request.inputs.values():
        if prod(tensor.shape) > MOST_ELEMENTS:
            return None
    slots = _slots_of(json, most_bytes)
    if slots is None:
        return None
    for begin, end, kind in slots:
        texts.append(json[behind:begin])
        kinds.append(kind)
        if kind == SHAPE:
            shapes.append(json[begin:end])
        behind = end
    texts.append(json[behind:])
    found = RepeatedRequest.__new__(RepeatedRequest)
    found._request = request.copy_with({})
    found._tensors = tuple([
        new_tensor(_name_in(signature, tensor.name), tensor.dtype, tensor.shape, None, None)
        for tensor in request.inputs.values()
    ])
    found._texts = tuple(texts)
    found._shapes = tuple(shapes)
    found._counts = tuple([prod(tensor.shape) for tensor in request.inputs.values()])
    found._kinds = bytes(kinds)
    if DATA not in kinds:
        found._json = json
        found._sizes = tuple([length(tensor._raw) for tensor in request.inputs.values()])
        found._size = len(json) + sum(found._sizes)
    found.form = form
    return found
