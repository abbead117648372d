"""Requests with several fields Content-Type: those that mean the same, and those that aiohttp refuses."""

from __future__ import annotations

import re

# The server reads a body of these types in the same way: Inference-Header-Content-Length says what is binary.
_ALIKE = frozenset({b"application/json", b"application/octet-stream"})
# No two parts of it match the same character: blanks that a client repeats cost no more than others.
_FIELD = re.compile(rb"\r\ncontent-type:([^\r\n]*)(?=\r\n[^ \t])", re.IGNORECASE)


def without_repeated(data: bytes) -> bytes:
    """Return the bytes of a request with only the first of its fields Content-Type, if all say the same.

    Fields say the same if they are equal, or if each is application/json or application/octet-stream:
    KServe's SDK sends both with a binary request. Fields of other types stay, and aiohttp refuses them with
    400: two readers of the request might choose different ones.

    data   from the start of a head, and never from within a body: its bytes must stay. A field that does not
           end in `data` stays too
    """
    found = list(_FIELD.finditer(data, 0, _end_of_head(data)))
    if len(found) < 2:
        return data
    types = {each[1].strip(b" \t") for each in found}
    if len(types) > 1 and not {each.lower() for each in types} <= _ALIKE:
        return data
    kept, at = [], 0
    for each in found[1:]:
        kept.append(data[at : each.start()])
        at = each.end()
    return b"".join([*kept, data[at:]])


def _end_of_head(data: bytes) -> int:
    """Return the position after the blank line that ends a head; the end of `data` if it has none."""
    found = data.find(b"\r\n\r\n")
    return len(data) if found < 0 else found + 4
