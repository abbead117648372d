# cython: boundscheck=False, wraparound=False
"""text_at_top: a text at the top level of JSON, which is read once and not parsed.

A parser makes an object of each value. For megabytes of small values, that takes seconds, in which nothing
else runs.
"""

from __future__ import annotations

import orjson

_QUOTE, _BACKSLASH, _COMMA = b'"\\,'
_OBJECT, _OBJECT_END, _LIST, _LIST_END = b"{}[]"
_SPACE = 32
# A long text is searched by blocks. The search costs more than reading that many bytes one by one.
_SHORT = 256
_BLOCK = 4096
_MOST_ESCAPED = 100  # keys with escapes that are decoded
_NO, _YES, _PERHAPS = range(3)


def text_at_top(json: bytes, key: bytes) -> str:
    """Return the last value of a key of the outermost object; "" if it is no text, or nothing has this key.

    "" also if a hundred keys have escapes. The result for other bytes than JSON is any text or none.

    key   ASCII, without quotes
    """
    size, depth, escaped = len(json), 0, 0
    at = _after_spaces(json, 0)
    if at == size or json[at] != _OBJECT:
        return ""
    begin = end = 0  # of the value with its quotes
    is_key = False
    while at < size:
        byte = json[at]
        if byte == _QUOTE:
            after = _after_text(json, at)
            found = _is_key(json, at, after, key) if is_key else _NO
            if found == _PERHAPS:
                escaped += 1
                if escaped > _MOST_ESCAPED:
                    return ""
                found = _YES if _decoded(json[at:after]) == key.decode() else _NO
            is_key = False
            at = after
            if found == _YES:
                # Behind the colon. Without one this is not JSON.
                at = begin = end = _after_spaces(json, min(_after_spaces(json, at) + 1, size))
                if at < size and json[at] == _QUOTE:
                    at = end = _after_text(json, at)
            continue
        at += 1
        if byte == _COMMA:
            is_key = depth == 1
        elif byte in (_OBJECT, _LIST):
            depth += 1
            is_key = depth == 1
        elif byte in (_OBJECT_END, _LIST_END):
            depth -= 1
            if depth == 0:
                return _decoded(json[begin:end])
    return ""


def _is_key(json: bytes, at: int, after: int, key: bytes) -> int:
    """Return whether the text with quotes from `at` to `after` is `key`: _PERHAPS if it has escapes."""
    size, length = after - at - 2, len(key)
    if size == length:
        for each in range(length):
            if json[at + 1 + each] != key[each]:
                return _NO
        return _YES
    # Only an escape of six bytes stands for a letter.
    if length < size <= 6 * length and (size - length) % 5 == 0:
        for each in range(at, after):
            if json[each] == _BACKSLASH:
                return _PERHAPS
    return _NO


def _after_text(json: bytes, at: int) -> int:
    """Return the position after the text whose first quote is at `at`; the size if it does not end."""
    size, blocks_from = len(json), at + _SHORT
    at += 1
    while at < size:
        if at >= blocks_from:
            end = min(at + _BLOCK, size)
            stop = json.find(b"\\", at, end)
            found = json.find(b'"', at, stop if stop >= 0 else end)
            if found >= 0:
                return found + 1
            at = stop + 2 if stop >= 0 else end
            if stop >= 0:
                blocks_from = at + _SHORT  # escapes may be dense
            continue
        byte = json[at]
        if byte == _QUOTE:
            return at + 1
        at += 2 if byte == _BACKSLASH else 1
    return size


def _after_spaces(json: bytes, at: int) -> int:
    size = len(json)
    while at < size and json[at] <= _SPACE:
        at += 1
    return at


def _decoded(text: bytes) -> str:
    """Return what a text in quotes says; "" if it is not JSON."""
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return ""
    return found if isinstance(found, str) else ""
