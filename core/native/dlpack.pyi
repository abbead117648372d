from typing import Any

Kind = tuple[int, int, int]
"""DLDataTypeCode, bits and lanes of an element."""

def seen(
    capsule: Any,
) -> tuple[Kind, tuple[int, ...], tuple[int, ...] | None, int, tuple[int, int]]:
    """Type of the elements, shape, steps (in elements, None for C order), address of the first element,
    device (DLDeviceType and number) of a capsule, which is not taken.

    ValueError for what is no capsule of DLPack, or was taken before.
    """

def lend(
    address: int, kind: tuple[int, int], shape: tuple[int, ...], device: tuple[int, int], owner: Any
) -> Any:
    """A capsule of memory in C order. `owner` keeps the memory, and is kept until the consumer, or the
    capsule that nobody takes, lets go of it; that may be on any thread.

    kind   DLDataTypeCode and bits of an element
    """
