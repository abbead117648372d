# cython: freethreading_compatible=True, boundscheck=False, wraparound=False
# distutils: language = c++
"""MessageShape: counts the entries of an encoded message, before protobuf creates an object for each."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport uint32_t
from libcpp cimport bool as boolean

cdef extern from "entries.hpp" namespace "infer" nogil:
    cdef cppclass Span:
        const char* data
        size_t size

    cdef enum class FieldKind(unsigned char):
        kUnknown
        kNumber
        kText
        kMessage

    cdef cppclass EntryField:
        FieldKind kind
        boolean repeated
        boolean element
        uint32_t width
        size_t type

    cdef cppclass Schema:
        size_t add_type() except +
        void set(size_t type, size_t number, EntryField field)

    cdef cppclass EntryBounds:
        size_t each
        size_t parts
        size_t elements

    cdef enum class Entries:
        kWithin
        kMalformed
        kTooManyOfField
        kTooManyParts
        kTooManyElements

    cdef cppclass EntryCounter:
        EntryCounter(const Schema&, const EntryBounds&)
        size_t type
        size_t number
        Entries count(Span message, size_t root)

    const size_t MOST_FIELDS "infer::Schema::kMostFields"


cdef bint _is_repeated(field) except *:
    # protobuf 6 has this property, and deprecates the label of older versions.
    found = getattr(field, "is_repeated", None)
    return field.label == field.LABEL_REPEATED if found is None else found


cdef class MessageShape:
    """The fields of a protobuf message type and of its nested types, in a C++ Schema."""

    cdef Schema schema
    cdef dict types  # full name → index
    cdef dict names  # (index of the message, number) → name
    cdef size_t root

    def __init__(self, descriptor, element_types=()):
        self.types = {}
        self.names = {}
        self.root = self._add(descriptor, frozenset(element_types))

    cdef size_t _add(self, descriptor, element_types) except *:
        cdef EntryField field
        cdef size_t type
        if descriptor.full_name in self.types:
            return self.types[descriptor.full_name]
        type = self.types[descriptor.full_name] = self.schema.add_type()
        for each in descriptor.fields:
            if each.number >= MOST_FIELDS:
                raise ValueError(f"{each.full_name} has the number {each.number}")
            field.repeated = _is_repeated(each)
            field.element = descriptor.full_name in element_types
            field.width = 0
            field.type = 0
            if each.type in (each.TYPE_MESSAGE, each.TYPE_GROUP):
                field.kind = FieldKind.kMessage
                field.type = self._add(each.message_type, element_types)
            elif each.type in (each.TYPE_STRING, each.TYPE_BYTES):
                field.kind = FieldKind.kText
            else:
                field.kind = FieldKind.kNumber
                if each.type in (each.TYPE_FLOAT, each.TYPE_FIXED32, each.TYPE_SFIXED32):
                    field.width = 4
                elif each.type in (each.TYPE_DOUBLE, each.TYPE_FIXED64, each.TYPE_SFIXED64):
                    field.width = 8
            self.schema.set(type, each.number, field)
            self.names[type, each.number] = each.name
        return type

    def excess(self, bytes data, size_t most_each, size_t most_parts, size_t most_elements):
        cdef EntryBounds bounds
        cdef EntryCounter* counter
        cdef Span message
        cdef Entries found
        bounds.each, bounds.parts, bounds.elements = most_each, most_parts, most_elements
        message.data = PyBytes_AS_STRING(data)
        message.size = PyBytes_GET_SIZE(data)
        counter = new EntryCounter(self.schema, bounds)
        try:
            with nogil:
                found = counter.count(message, self.root)
            if found == Entries.kWithin:
                return None
            if found == Entries.kMalformed:
                raise ValueError("the bytes are no message")
            if found == Entries.kTooManyParts:
                return "parts", most_parts
            if found == Entries.kTooManyElements:
                return "elements", most_elements
            return self.names[counter.type, counter.number], most_each
        finally:
            del counter
