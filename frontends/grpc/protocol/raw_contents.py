"""Take raw tensor contents out of an encoded ModelInferRequest without copying them.

The protobuf runtime copies each `bytes` field twice, once into its message and once into a Python
object. Tensors are nearly all of a request, so they are cut out before the runtime sees it.
"""

from __future__ import annotations

# `raw_input_contents` is field 7, length-delimited; a tag is field number * 8 + wire type.
_RAW = 7 * 8 + 2
_LENGTH_DELIMITED = 2
_LARGEST_FIELD = 7  # every field up to here has a tag of one byte, so a request has no others

# A request has a field for each input, output, parameter and raw contents. One with more than this
# goes through the runtime, whose loop over fields is not in Python.
MOST_FIELDS = 4096


def separate(data: bytes) -> tuple[bytes, list[memoryview]] | None:
    """The request without its raw contents, and the raw contents as views of `data`.

    None if that is not worth it or not certain: many fields, unknown ones, or bytes that are no
    request at all. The caller then takes the whole to the runtime, which knows all about errors.
    """
    end = len(data)
    position = 0
    rest: list[bytes] = []
    rest_start = 0
    views: list[memoryview] = []
    view = memoryview(data)
    for _ in range(MOST_FIELDS):
        if position == end:
            rest.append(data[rest_start:end])
            return b"".join(rest), views
        tag = data[position]
        if tag & 7 != _LENGTH_DELIMITED or not 0 < tag >> 3 <= _LARGEST_FIELD:
            return None
        start = position
        position += 1
        length = shift = 0
        while True:
            if position == end or shift > 28:  # five bytes hold the 2 GiB that a message may have
                return None
            byte = data[position]
            position += 1
            length |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
        stop = position + length
        if stop > end:
            return None
        if tag == _RAW:
            rest.append(data[rest_start:start])
            views.append(view[position:stop])
            rest_start = stop
        position = stop
    return None
