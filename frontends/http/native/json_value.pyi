from typing import Any, Final

from core.dtypes import DataType
from core.tensor import Buffer

# Plans: the values that become Elements if they are large.
NOTHING: Final = 0
INFERENCE: Final = 1  # `data` of each element of `inputs`
MEMBERS: Final = 2  # the members of the document and of its member `parameters`

MOST_VALUES: Final[int]
MOST_TEXT_BYTES: Final[int]

def count_values(data: Buffer) -> int:
    """Return the number of values and keys of a JSON text, those included that `read` leaves as Elements.

    The number is exact for valid JSON, and an estimate from the punctuation for other text. Runs without the
    GIL; no other thread may write to `data` meanwhile.
    """

def read(data: Buffer, plan: int = 0, most_values: int = ...) -> Any:
    """Return the Python value of a JSON text in UTF-8, which may begin with a byte order mark.

    plan          NOTHING, INFERENCE or MEMBERS: which values become Elements if they are large. An array is
                  large with more than 256 values, a string (MEMBERS only) with more than 64 KiB
    most_values   limit of values that become Python objects: keys count, values within Elements do not
    NaN, Inf, Infinity and their negatives are numbers. An integer of more than 64 bits is a float.

    The whole text is checked before the first object is made. A large text is checked without the GIL, so no
    other thread may write to it. Cyclic garbage collection waits while objects are made. Thread-safe.
    Raises CoreError(INVALID) for text that is not JSON, with the position of the first wrong byte, for more
    than 1024 levels, for too many values, and for more than MOST_TEXT_BYTES of strings among them.
    """

class Elements:
    """A valid JSON array or string that stays text: a view, which keeps the text alive.

    is_array     False for a string, which counts as one element
    count        number of elements at all levels that are not arrays
    text_bytes   size of all strings in bytes of UTF-8, without quotes and escapes
    is_too_deep  whether the array has more levels than a tensor may have
    types        Python types of the elements: a subset of int, float, str, bool, dict and type(None)
    len()        number of elements of the outermost array; 1 for a string
    """

    is_array: bool
    count: int
    text_bytes: int
    is_too_deep: bool
    types: set[type]

    def __len__(self) -> int: ...
    def numbers(self, dtype: DataType, byte_size: int) -> tuple[bytes, None] | tuple[None, Any]:
        """Return (elements in wire form, None), or (None, first element outside of the datatype's range).

        byte_size   size in bytes of one element of `dtype`
        The caller checks before that `types` fit the datatype. Runs without the GIL, on any thread.
        """

    def strings(self) -> bytes:
        """Return the elements, which must be strings, in the wire form of BYTES: each as length and bytes."""

    def characters(self) -> bytes:
        """Return the string in UTF-8, without quotes and escapes. Only if `is_array` is False."""
