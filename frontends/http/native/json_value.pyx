# cython: boundscheck=False, wraparound=False
"""JSON text → Python values, up to a limit of their number.

bytes ─► json_tape.hpp ─► [read] ─► values
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.list cimport PyList_New, PyList_SET_ITEM
from cpython.memoryview cimport PyMemoryView_FromObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy
from libcpp cimport bool as boolean
from libcpp.vector cimport vector

from frontends.shared.native.decoding cimport text_of

from core.errors import invalid

cdef extern from "Python.h":
    int PyGC_Disable()
    int PyGC_Enable()

cdef extern from "json_items.hpp" namespace "http_json" nogil:
    ctypedef int Plan
    ctypedef int ItemKind
    ctypedef int Outcome
    const ItemKind kNull "http_json::ItemKind::kNull"
    const ItemKind kTrue "http_json::ItemKind::kTrue"
    const ItemKind kFalse "http_json::ItemKind::kFalse"
    const ItemKind kInteger "http_json::ItemKind::kInteger"
    const ItemKind kUnsigned "http_json::ItemKind::kUnsigned"
    const ItemKind kReal "http_json::ItemKind::kReal"
    const ItemKind kString "http_json::ItemKind::kString"
    const ItemKind kArray "http_json::ItemKind::kArray"
    const ItemKind kObject "http_json::ItemKind::kObject"
    const ItemKind kElements "http_json::ItemKind::kElements"
    const Outcome kRead "http_json::Outcome::kRead"
    const Outcome kMalformed "http_json::Outcome::kMalformed"
    const Outcome kTooDeep "http_json::Outcome::kTooDeep"
    const Outcome kTooMany "http_json::Outcome::kTooMany"
    const int kMostNesting
    const unsigned kHasNull, kHasTruth, kHasInteger, kHasReal, kHasText, kHasObject

    cdef cppclass Text:
        const char* data
        size_t size

    cdef cppclass Summary:
        size_t leaves
        size_t length
        int depth
        unsigned kinds
        size_t text_bytes

    cdef cppclass Item:
        ItemKind kind
        Text text
        size_t count
        int64_t integer
        uint64_t natural
        double real

cdef extern from "json_tape.hpp" namespace "http_json" nogil:
    cdef cppclass Tape:
        Tape()
        Outcome read(const char*, size_t, Plan, size_t, size_t) except +
        const char* reason()
        size_t position()
        const vector[Item]& items()
        const vector[Summary]& summaries()

cdef extern from "json_count.hpp" namespace "http_json" nogil:
    size_t values_in "http_json::count_values"(const char*, const char*)

cdef extern from "tensor_data.hpp" namespace "http_json" nogil:
    ctypedef int NativeDataType "http_json::DataType"
    const char* first_outside(const char*, const char*, NativeDataType, size_t, char*) except +
    size_t unescape(const char*, const char*, char*)
    boolean pack_strings(const char*, const char*, size_t, char*) except +

cdef enum:
    LARGE = 65536  # bytes of JSON from which on reading takes longer than releasing the GIL
    DEEPEST = 100  # levels of arrays that a tensor may have

NOTHING, INFERENCE, MEMBERS = range(3)  # the order of http_json::Plan
MOST_VALUES = 50_000
MOST_TEXT_BYTES = 4 * 1024 * 1024

cdef str _PREFIX = "failed to parse the request JSON buffer:"


def count_values(data):
    """Return the number of values and keys of a JSON text; an estimate if the text is invalid."""
    cdef Py_buffer view
    cdef size_t count
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        with nogil:
            count = values_in(<const char*>view.buf, <const char*>view.buf + view.len)
        return count
    finally:
        PyBuffer_Release(&view)


def read(data, int plan=0, size_t most_values=MOST_VALUES):
    """Return the Python value of a JSON text.

    plan   NOTHING, INFERENCE or MEMBERS: where large arrays, with MEMBERS also long strings, become Elements
    Raises CoreError(INVALID) for invalid JSON, and for too many values or bytes of strings beside Elements.
    """
    cdef Py_buffer view
    cdef Tape tape
    cdef Outcome outcome
    cdef const char* text
    cdef Builder builder
    cdef int collects
    cdef Plan chosen = <Plan>plan
    cdef size_t most_text = MOST_TEXT_BYTES
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        text = <const char*>view.buf
        if view.len >= LARGE:
            with nogil:
                outcome = tape.read(text, view.len, chosen, most_values, most_text)
        else:
            outcome = tape.read(text, view.len, chosen, most_values, most_text)
        if outcome != kRead:
            raise _refusal(&tape, outcome, data, most_values)
        builder = Builder.__new__(Builder)
        builder.item = tape.items().data()
        builder.summaries = tape.summaries().data()
        builder.body = data
        builder.text = text
        # Each new list or dict counts towards a garbage collection of the whole process. The new objects have
        # no cycles, and their number is limited.
        collects = PyGC_Disable()
        try:
            return builder.build()
        finally:
            if collects:
                PyGC_Enable()
    finally:
        PyBuffer_Release(&view)


cdef _refusal(Tape* tape, Outcome outcome, data, size_t most_values):
    if outcome == kMalformed:
        return invalid(f"{_PREFIX} {tape.reason().decode()}. at {tape.position()}")
    if outcome == kTooDeep:
        return invalid(f"JSON nesting depth exceeds maximum allowed limit ({kMostNesting})")
    if outcome == kTooMany:
        return invalid(
            f"the JSON of the request has {count_values(data)} values and keys; {most_values} are the most "
            "beside the elements of tensors. Send large arrays as 'data' of an input, or in binary."
        )
    return invalid(
        f"the JSON of the request has more than {MOST_TEXT_BYTES} bytes of text beside the elements of "
        "tensors, which is the most. Send long texts as elements of an input."
    )


@cython.final
cdef class Builder:
    """Creates one Python value from the items of a Tape, in their order. Used once."""

    cdef const Item* item
    cdef const Summary* summaries
    cdef object body
    cdef const char* text

    cdef object build(self):
        cdef const Item* item = self.item
        cdef size_t i
        cdef dict members
        self.item += 1
        if item.kind == kString:
            return text_of(item.text.data, item.text.size)
        if item.kind == kInteger:
            return item.integer
        if item.kind == kReal:
            return item.real
        if item.kind == kArray:
            elements = PyList_New(<Py_ssize_t>item.count)
            for i in range(item.count):
                value = self.build()
                Py_INCREF(value)  # PyList_SET_ITEM takes a reference
                PyList_SET_ITEM(elements, <Py_ssize_t>i, value)
            return elements
        if item.kind == kObject:
            members = {}
            for i in range(item.count):
                key = self.build()
                members[key] = self.build()
            return members
        if item.kind == kTrue:
            return True
        if item.kind == kFalse:
            return False
        if item.kind == kNull:
            return None
        if item.kind == kUnsigned:
            return item.natural
        return self.kept(item)

    cdef Elements kept(self, const Item* item):
        """Return the Elements of a value that stays text."""
        cdef Elements found = Elements.__new__(Elements)
        cdef Py_ssize_t begin = item.text.data - self.text
        found._summary = self.summaries[item.count]
        found._text = PyMemoryView_FromObject(self.body)[begin : begin + <Py_ssize_t>item.text.size]
        found.is_array = item.kind == kElements
        return found


@cython.final
cdef class Elements:
    """A valid JSON array or string that stays text: a view, which keeps the text alive."""

    cdef object _text
    cdef Summary _summary
    cdef readonly bint is_array

    def __len__(self):
        return self._summary.length

    @property
    def count(self):
        return self._summary.leaves

    @property
    def text_bytes(self):
        return self._summary.text_bytes

    @property
    def is_too_deep(self):
        return self._summary.depth > DEEPEST

    @property
    def types(self):
        cdef unsigned kinds = self._summary.kinds
        found = set()
        for bit, kind in (
            (kHasNull, type(None)),
            (kHasTruth, bool),
            (kHasInteger, int),
            (kHasReal, float),
            (kHasText, str),
            (kHasObject, dict),
        ):
            if kinds & <unsigned>bit:
                found.add(kind)
        return found

    def numbers(self, dtype, Py_ssize_t byte_size):
        """Return (elements in wire form, None), or (None, first element outside of the datatype's range)."""
        cdef Py_buffer view
        cdef int number = dtype.number - 1
        cdef NativeDataType type = <NativeDataType>number
        cdef size_t count = self._summary.leaves
        cdef const char* wrong
        cdef const char* begin
        raw = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>count * byte_size)
        cdef char* to = PyBytes_AS_STRING(raw)
        PyObject_GetBuffer(self._text, &view, PyBUF_SIMPLE)
        try:
            begin = <const char*>view.buf
            with nogil:
                wrong = first_outside(begin, begin + view.len, type, count, to)
            if wrong == NULL:
                return raw, None
            return None, read(_number_at(wrong, begin + view.len))
        finally:
            PyBuffer_Release(&view)

    def strings(self):
        """Return the elements, which must be strings, in wire form: each as its length and its bytes."""
        cdef Py_buffer view
        cdef size_t count = self._summary.leaves
        cdef const char* begin
        raw = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>(4 * count + self._summary.text_bytes))
        cdef char* to = PyBytes_AS_STRING(raw)
        PyObject_GetBuffer(self._text, &view, PyBUF_SIMPLE)
        try:
            begin = <const char*>view.buf
            with nogil:
                pack_strings(begin, begin + view.len, count, to)
            return raw
        finally:
            PyBuffer_Release(&view)

    def characters(self):
        """Return the string in UTF-8, without quotes and escapes. Only if `is_array` is False."""
        cdef Py_buffer view
        cdef const char* begin
        raw = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>self._summary.text_bytes)
        cdef char* to = PyBytes_AS_STRING(raw)
        PyObject_GetBuffer(self._text, &view, PyBUF_SIMPLE)
        try:
            begin = <const char*>view.buf
            with nogil:
                unescape(begin, begin + view.len, to)
            return raw
        finally:
            PyBuffer_Release(&view)


cdef bytes _number_at(const char* begin, const char* end):
    cdef const char* at = begin
    while at < end and at[0] in b"+-.0123456789eEINafinty":
        at += 1
    return begin[: at - begin]
