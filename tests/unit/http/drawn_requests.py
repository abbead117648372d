"""Requests in JSON that hypothesis draws: mostly right, written in any way that JSON allows."""

import json

import numpy as np
from hypothesis import strategies as st

from core import dtypes

INTEGERS = [dtype for dtype in dtypes.ALL if "INT" in dtype.name]
texts = st.text(max_size=8) | st.sampled_from(
    ["\0", '"\\/', "\u00e4\U0001f600", "\x7f\n\t", "x" * 70]
)
spaces = st.sampled_from(["", "", "", " ", "\n\t\r "])
WORDS = [
    "NaN", "Infinity", "-Infinity", "Inf", "-Inf", "-NaN", "-0", "-0.0", "0e5", "1E+2", "1.5e-3", "5e-324",
    "1e-400", "1e400", "3.5e38", "3.4028235677973366e38", "1.00000005960464477539", "9007199254740993",
    "18446744073709551616", "0.1000000000000000055511151231257827", "123456789012345678901234567890e-20",
    "01", "1.", ".5", "+1", "--1", "1e", "true1", "nul", "Infinit", "inf", "nan", "0x1", "1_0", "- 1",
]  # fmt: skip
literals = (
    st.sampled_from(WORDS)
    | st.integers(-(2**65), 2**65).map(str)
    | st.sampled_from([2**n + d for n in (7, 8, 15, 16, 31, 32, 63, 64) for d in (-1, 0, 1)]).map(
        str
    )
    | st.floats(allow_nan=False, allow_infinity=False).map(repr)
    | st.floats(width=32, allow_nan=False, allow_infinity=False).map(lambda x: str(np.float32(x)))
    | st.decimals(-1000, 1000, places=5).map(str)
)


class Literal(str):
    """JSON text that is written unchanged."""


@st.composite
def written(draw, value):
    """A JSON value as text: any order of members, any spaces, strings escaped in any way."""
    if isinstance(value, Literal):
        return value
    if isinstance(value, dict):
        keys = draw(st.permutations(list(value)))
        members = [
            f"{draw(written(key))}{draw(spaces)}:{draw(spaces)}{draw(written(value[key]))}"
            for key in keys
        ]
        return (
            "{"
            + draw(spaces)
            + (draw(spaces) + "," + draw(spaces)).join(members)
            + draw(spaces)
            + "}"
        )
    if isinstance(value, list):
        items = [draw(written(item)) for item in value]
        return "[" + draw(spaces) + ("," + draw(spaces)).join(items) + draw(spaces) + "]"
    text = json.dumps(value, ensure_ascii=draw(st.booleans()))
    return text.replace("/", "\\/") if draw(st.booleans()) else text


@st.composite
def nested(draw, items):
    """Return the items, some of them in nested lists."""
    if not items or draw(st.integers(0, 3)):
        return items
    cut = draw(st.integers(0, len(items)))
    return [draw(nested(items[:cut])), *items[cut:]]


@st.composite
def entries(draw, name):
    """One input, mostly right, and the bytes that it has behind the JSON."""
    dtype = draw(st.sampled_from(dtypes.ALL))
    shape = draw(st.lists(st.integers(0, 3), max_size=3))
    count = int(np.prod(shape))
    entry = {"name": name, "datatype": dtype.name, "shape": shape}
    if draw(st.integers(0, 3)) == 0:
        tail = draw(st.binary(max_size=40))
        entry["parameters"] = {"binary_data_size": len(tail)}
        return entry, tail
    if dtype is dtypes.BYTES:
        values = st.lists(texts, min_size=count, max_size=count)
    elif dtype is dtypes.BOOL:
        values = st.lists(st.booleans(), min_size=count, max_size=count)
    elif dtype in INTEGERS:
        limits = np.iinfo(dtype.numpy)
        one = st.integers(int(limits.min), int(limits.max))
        values = st.lists(one, min_size=count, max_size=count)
    else:
        values = st.lists(literals.map(Literal), min_size=count, max_size=count)
    entry["data"] = draw(nested(draw(values)))
    return entry, b""


parameters = st.fixed_dictionaries(
    {},
    optional={
        "sequence_id": st.integers(0, 2**64 - 1) | texts,
        "sequence_start": st.booleans(),
        "sequence_end": st.booleans(),
        "priority": st.integers(0, 2**64 - 1),
        "timeout": st.integers(0, 2**64 - 1),
        "binary_data_output": st.booleans(),
        "own": st.booleans() | texts | st.integers(-(2**64), 2**64) | literals.map(Literal),
        "\u00e4\n": st.floats(),
    },
)
outputs = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(["y", "z", "\u00e4"])},
        optional={
            "parameters": st.fixed_dictionaries(
                {},
                optional={
                    "binary_data": st.booleans(),
                    "classification": st.integers(0, 3),
                    "own": st.none(),
                },
            )
        },
    ),
    max_size=3,
)


@st.composite
def requests(draw):
    """JSON text of a request, mostly right, and the bytes behind it."""
    names = draw(st.lists(texts, max_size=3))
    inputs, tails = [], []
    for name in names:
        entry, tail = draw(entries(name))
        inputs.append(entry)
        tails.append(tail)
    document = {"inputs": inputs}
    for member, values in (("id", texts), ("parameters", parameters), ("outputs", outputs)):
        if draw(st.booleans()):
            document[member] = draw(values)
    if draw(st.booleans()):
        document["own"] = draw(st.recursive(literals.map(Literal) | texts, st.lists, max_leaves=4))
    return draw(written(document)).encode("utf-8", "surrogatepass"), b"".join(tails)
