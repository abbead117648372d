"""Limits on the size of a body and its parts.

--http-max-input-size bounds everything that is decoded: JSON, a raw input, a decompressed body. Binary
tensors are views, so only the limit of the whole body applies to them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from core.errors import CoreError, invalid

JSON_SIZE = "Inference-Header-Content-Length"
MOST_CHUNKS = 65536  # nonempty chunks of one body
MOST_CONTROL_BYTES = 1024 * 1024  # of a body that is not for inference and carries no files
_LARGEST_INT32 = 2**31 - 1


def largest_body(headers: Mapping[str, str], most_bytes: int, most_body: int) -> int:
    """Return the limit in bytes of an inference request's body as received, still compressed.

    most_bytes   --http-max-input-size: the limit, but a little more for a compressed body
    most_body    --http-max-body-size: the limit without compression if the header JSON_SIZE is other than 0,
                 since binary tensors may then follow
    """
    if headers.get("Content-Encoding", "identity") != "identity":
        # zlib adds a few bytes per block to data that it cannot shrink.
        return most_bytes + most_bytes // 256 + 1024
    if headers.get(JSON_SIZE, "0") == "0":
        return most_bytes
    return most_body


def body_too_large(size: int, most: int) -> CoreError:
    """Return the error for a body that may hold binary tensors and exceeds `most` bytes."""
    advice = "" if most >= _LARGEST_INT32 else "; --http-max-body-size has set it"
    return invalid(f"request body of {size} bytes exceeds the maximum of {most} bytes{advice}")


def control_too_large(size: int, most: int) -> CoreError:
    """Return the error for a body above `most` bytes that is not for inference and carries no files."""
    return invalid(
        f"request body of {size} bytes exceeds the maximum of {most} bytes of such a request"
    )


def too_large(size: int, most: int) -> CoreError:
    """Return the error for more than `most` bytes of JSON, or of a body without binary tensors."""
    return invalid(
        f"request JSON size of {size} bytes exceeds the maximum allowed input size of {most} bytes. "
        "Use --http-max-input-size to increase the limit."
    )


def too_many_chunks() -> CoreError:
    """Return the error for a body in more than MOST_CHUNKS pieces."""
    return invalid(
        f"Chunked request body exceeds maximum of {MOST_CHUNKS} non-empty chunks. "
        "Send fewer or larger HTTP chunks."
    )


def natural_number(text: str) -> int:
    """Return the number that a text of one to nine ASCII digits is, else -1."""
    return int(text) if len(text) < 10 and text.isascii() and text.isdigit() else -1


def json_size(headers: Mapping[str, str], body_size: int) -> int:
    """Return the size of the JSON at the start of a body: the header JSON_SIZE, or `body_size` without it.

    0 is a request without JSON, whose body is its only input. Raises CoreError(INVALID) if the header is no
    number from 0 to `body_size`.
    """
    if (text := headers.get(JSON_SIZE)) is None:
        return body_size
    if 0 <= (size := natural_number(text)) <= body_size:
        return size  # the form that every client writes
    if re.fullmatch(r"[+-]?[0-9]+", text) is None:
        raise invalid(f"Unable to parse {JSON_SIZE}, got: {text}")
    # A longer text of digits is not converted: it may be very long.
    size = int(text) if len(text) < 20 else _LARGEST_INT32 + 1
    if not -_LARGEST_INT32 - 1 <= size <= _LARGEST_INT32:
        raise invalid(
            f"Unable to parse {JSON_SIZE}, value is out of range "
            f"[ {-_LARGEST_INT32 - 1}, {_LARGEST_INT32} ], got: {text}"
        )
    if not 0 <= size <= body_size:
        raise invalid(f"inference header size should be in range (0, {body_size}), got: {text}")
    return size
