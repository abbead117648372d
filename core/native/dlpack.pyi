from typing import Any

Kind = tuple[int, int, int]
"""DLDataTypeCode, bits and lanes of an element."""

def array_info(
    capsule: Any,
) -> tuple[Kind, tuple[int, ...], tuple[int, ...] | None, int, tuple[int, int]]:
    """Return the description of the array in a capsule, without consuming the capsule.

    The result is: type of the elements, shape, strides (in elements, None for C order), address of the first
    element, device (DLDeviceType and number). Raise ValueError for another object, or a consumed capsule.
    """

def lend(
    address: int, kind: tuple[int, int], shape: tuple[int, ...], device: tuple[int, int], owner: Any
) -> Any:
    """Return a capsule for memory in C order.

    kind    DLDataTypeCode and bits of an element
    owner   object that keeps the memory; referenced until the consumer, or the unconsumed capsule, is freed,
            on any thread
    """
