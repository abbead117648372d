from typing import Any

Kind = tuple[int, int, int]
"""DLDataTypeCode, bits and lanes of an element."""

def array_info(
    capsule: Any,
) -> tuple[Kind, tuple[int, ...], tuple[int, ...] | None, int, tuple[int, int]]:
    """Return the description of the array in a capsule, without consuming the capsule.

    The result is: type of the elements, shape, strides (in elements, None for C order), address of the first
    element, device (DLDeviceType and number). Raise ValueError for another object or a consumed capsule.
    """

def lend(
    address: int, kind: tuple[int, int], shape: tuple[int, ...], device: tuple[int, int], owner: Any
) -> Any:
    """Return a DLPack capsule for the array of `shape` at `address`, in C order, without a copy.

    kind    DLDataTypeCode and bits of an element
    owner   object that keeps the memory alive; referenced until the consumer frees the array, on any thread,
            or until the capsule is freed without a consumer
    """
