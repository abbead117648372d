"""What the installed ONNX Runtime knows: IR versions, opsets and operators. Asked once per process.

ONNX Runtime has no function that returns its newest versions. Its error for a tiny model that is too new
names them.
"""

from __future__ import annotations

import re
from functools import cache

import onnxruntime as ort

_NEWEST_IR = re.compile(r"max supported IR version: (\d+)")
_NEWEST_OPSET = re.compile(r"is till opset (\d+)")
_FAR = 9999  # a version that no release has


def _bytes(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2, len(content)]) + content


def _varint(number: int, value: int) -> bytes:
    out = bytearray([number << 3])
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _refusal(ir_version: int, domain: str, opset: int) -> str:
    """Return the error of ONNX Runtime for a model without nodes; "" if it takes the model."""
    opsets = _bytes(8, _bytes(1, domain.encode()) + _varint(2, opset))
    if domain:
        opsets += _bytes(8, _bytes(1, b"") + _varint(2, 7))
    graph = _bytes(7, _bytes(2, b"g"))
    options = ort.SessionOptions()
    options.log_severity_level = 4  # the error comes back as an exception
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    try:
        ort.InferenceSession(
            _varint(1, ir_version) + graph + opsets, options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # onnxruntime has a class for each kind, in a private module
        return str(error)
    return ""


@cache
def newest_ir_version() -> int | None:
    """Return the newest IR version; None if ONNX Runtime does not say."""
    found = _NEWEST_IR.search(_refusal(_FAR, "", 7))
    return int(found[1]) if found else None


@cache
def newest_opset(domain: str) -> int | None:
    """Return the newest opset of a domain; None if ONNX Runtime does not say, or does not know the domain."""
    found = _NEWEST_OPSET.search(_refusal(8, domain, _FAR))
    return int(found[1]) if found else None


@cache
def operators() -> dict[tuple[str, str], int] | None:
    """Return (domain, operator) → first opset that has it; None if this build does not list them."""
    try:
        schemas = ort.capi.onnxruntime_pybind11_state.get_all_operator_schema()
        found: dict[tuple[str, str], int] = {}
        for each in schemas:
            key = ("" if each.domain == "ai.onnx" else each.domain, each.name)
            found[key] = min(each.since_version, found.get(key, each.since_version))
    except (AttributeError, RuntimeError):
        return None
    return found or None
