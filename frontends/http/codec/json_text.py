"""JSON text → Python values, as strict as JSON and as lenient as Triton.

Triton accepts a byte order mark, and NaN, Inf, Infinity, -NaN as numbers. Error messages use RapidJSON's
words, which are Triton's, with the position in bytes.
"""

from __future__ import annotations

from typing import Any

from core.tensor import Buffer
from frontends.http.native.json_value import INFERENCE as INFERENCE
from frontends.http.native.json_value import MEMBERS as MEMBERS
from frontends.http.native.json_value import MOST_TEXT_BYTES as MOST_TEXT_BYTES
from frontends.http.native.json_value import Elements as Elements
from frontends.http.native.json_value import read

read_json = read
TOO_DEEP = "JSON nesting depth exceeds maximum allowed limit (100)"  # of the elements of a tensor

_MOST_CONTROL_VALUES = 10_000


def read_control(data: Buffer) -> Any:
    """Return the value of a control document. Raises what `read_json` raises.

    Control documents are small, so their bound is small: 10,000 values and keys.
    """
    return read_json(data, most_values=_MOST_CONTROL_VALUES)
