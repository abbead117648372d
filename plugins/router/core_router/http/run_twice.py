"""What the body of an inference request says against a second execution of it.

head, message ─► [may_name_sequence, names_shared_memory, streams] ─► whether to repeat it, or to copy it

The body is searched and not parsed. A name within a text is taken for one of the request: it then runs once.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from core_router.http.heads import CHUNKED

if TYPE_CHECKING:
    from core_router.http.heads import RequestHead

_ENCODED = re.compile(rb"\ncontent-encoding:", re.IGNORECASE)
_CHUNK_LINE = re.compile(rb"\r\n[0-9A-Fa-f]{1,16}(?:;[^\r\n]*)?\r\n")
_STREAMS = re.compile(rb'"stream"\s*:\s*true')
_ESCAPED_LETTER = re.compile(rb"\\u00[4-7]")  # in a name, that of any other


def may_name_sequence(head: RequestHead, message: bytes) -> bool:
    """Return whether a request names a sequence, or has a body that the router cannot read.

    message   head and body
    """
    text = _json(head, message)
    if text is None:
        return True
    return b'"sequence_id"' in text or (
        b"\\u00" in text and _ESCAPED_LETTER.search(text) is not None
    )


def names_shared_memory(head: RequestHead, message: bytes) -> bool:
    """Return whether tensors of a request are in shared memory, which two servers must not write."""
    text = _json(head, message)
    return text is None or b'"shared_memory_region"' in text


def streams(head: RequestHead, message: bytes) -> bool:
    """Return whether a request asks for a response in parts. Only `infer` never does."""
    path = unquote_to_bytes(head.target.partition(b"?")[0])
    if path.endswith(b"/infer"):
        return False
    if path.endswith(b"_stream"):
        return True
    text = _json(head, message)
    return text is None or _STREAMS.search(text) is not None


def _json(head: RequestHead, message: bytes) -> bytes | None:
    """Return the JSON of a request, b"" if it has tensors only. None for forms and compressed bodies."""
    end = message.find(b"\r\n\r\n") + 4
    if _ENCODED.search(message, 0, end):
        return None
    is_chunked = head.body_size == CHUNKED
    text = _CHUNK_LINE.sub(b"", message[end - 2 :]) if is_chunked else message[end:]
    if head.json_size >= 0:
        text = text[: head.json_size]
    if head.json_size == 0 or text.lstrip()[:1] == b"{":
        return text
    return None
