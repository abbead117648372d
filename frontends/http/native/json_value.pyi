from typing import Any, Final

from core.dtypes import DataType
from core.tensor import Buffer

# Which values stay text when they are large.
NOTHING: Final = 0
INFERENCE: Final = 1  # `data` of each element of `inputs`
MEMBERS: Final = 2  # the members of the document, and those of its member `parameters`

MOST_VALUES: Final[int]
MOST_TEXT_BYTES: Final[int]

def count_values(data: Buffer) -> int:
    """How many values and keys a text of JSON has: what it would be as Python objects.

    Exact for what is JSON; of other text it is what its punctuation says. Runs without the GIL.
    """

def read(data: Buffer, plan: int = 0, most_values: int = ...) -> Any:
    """Return the value of a JSON text, which may begin with a byte order mark.

    plan          which values are Elements if they are large: an array of more than 256 values, a string of
                  more than 64 KiB
    most_values   limit of values that become Python objects: keys count, values within Elements do not
    NaN, Inf, Infinity and their negatives are numbers. An integer of more than 64 bits is a float.

    The whole text is checked before the first object is made. A large text is checked without the GIL, so no
    other thread may write to it. Cyclic garbage collection waits while objects are made. Thread-safe.
    Raises CoreError(INVALID) for text that is not JSON, with the position of the first wrong byte, for more
    than 1024 levels, for too many values, and for more than MOST_TEXT_BYTES of strings among them.
    """

class Elements:
    """An array or a string that stays text, whose form has been checked; it views the text.

    is_array     False for a string, which has the one element that it is
    count        elements that are no arrays, however deep they are
    text_bytes   UTF-8 of all strings
    is_too_deep  whether there are more levels of arrays than a tensor may have
    types        of the elements: int, float, str, bool, dict and type(None)
    len()        elements of the array itself
    """

    is_array: bool
    count: int
    text_bytes: int
    is_too_deep: bool
    types: set[type]

    def __len__(self) -> int: ...
    def numbers(self, dtype: DataType, byte_size: int) -> tuple[bytes, None] | tuple[None, Any]:
        """The elements in wire form, or the first that is outside of the range of the datatype.

        byte_size   of one element
        All of them must be of a type that the datatype takes. Without the GIL; any thread.
        """

    def strings(self) -> bytes:
        """The elements, which must be strings, in wire form: each as its length and its bytes."""

    def characters(self) -> bytes:
        """The UTF-8 of a string."""
