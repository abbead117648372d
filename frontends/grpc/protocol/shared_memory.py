"""The parameters that place an input or output in shared memory."""

from __future__ import annotations

from typing import NamedTuple

from core.errors import CoreError, invalid
from frontends.grpc.protocol.parameters import UINT64, Parameters, kind

_REGION = "shared_memory_region"
_BYTE_SIZE = "shared_memory_byte_size"
_OFFSET = "shared_memory_offset"


class RegionSlice(NamedTuple):
    """A part of a registered region; offset and size in bytes."""

    region: str
    offset: int
    byte_size: int


def place(parameters: Parameters, tensor: str) -> RegionSlice | None:
    """Return the place in shared memory that the parameters of `tensor` name; None if they name none.

    An absent offset is 0. Raises CoreError(INVALID) if the parameters are incomplete or of the wrong kind.
    """
    if not parameters:
        return None
    if _REGION not in parameters:
        for name in (_BYTE_SIZE, _OFFSET):
            if name in parameters:
                raise invalid(
                    f"'{name}' can not be specified without '{_REGION}' parameter for tensor "
                    f"'{tensor}'"
                )
        return None
    parameter = parameters[_REGION]
    if kind(parameter) != "string_param":
        raise _wrong_kind(_REGION, tensor, "string_param")
    offset = _integer(parameters, _OFFSET, tensor)
    byte_size = _integer(parameters, _BYTE_SIZE, tensor)
    if _BYTE_SIZE not in parameters:
        raise invalid(
            f"'{_BYTE_SIZE}' must be specified along with '{_REGION}' parameter for tensor "
            f"'{tensor}'"
        )
    return RegionSlice(parameter.string_param, offset, byte_size)


def _integer(parameters: Parameters, name: str, tensor: str) -> int:
    if name not in parameters:
        return 0
    parameter = parameters[name]
    if kind(parameter) != "int64_param":
        raise _wrong_kind(name, tensor, "int64_param")
    return parameter.int64_param % UINT64


def _wrong_kind(name: str, tensor: str, expected: str) -> CoreError:
    return invalid(
        f"invalid value type for '{name}' parameter for tensor '{tensor}', expected {expected}."
    )
