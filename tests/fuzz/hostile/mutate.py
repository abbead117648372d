"""Values that hurt, and ways to spoil documents and bytes. Pure: all chance comes from `random`."""

import copy
import json
import struct

NUMBERS = [
    *(0, -1, 1, 2, 7, 127, 128, 255, 256, 65535, 65536, 2**31 - 1, 2**31, 2**32 - 1, 2**32),
    *(
        2**53,
        2**62,
        2**63 - 1,
        2**63,
        2**64 - 1,
        2**64,
        2**70,
        10**40,
        -(2**31),
        -(2**63),
        -(2**64),
    ),
    *(0.5, -0.0, 1e308, -1e308, 5e-324, 1e30, float("nan"), float("inf"), float("-inf")),
]
TEXTS = [
    *(
        "",
        " ",
        "\0",
        "\n",
        "\r\nX: y",
        "\x1b[31m",
        "..",
        "../..",
        "../../../../etc/passwd",
        "/etc/passwd",
    ),
    *(
        "a" * 300,
        "a" * 9000,
        "é",
        "\U0001f600",
        "\ud800",
        "%s%n%x",
        "{}",
        "$(id)",
        "`id`",
        "'; --",
        "%00",
    ),
    *(
        "INPUT0",
        "OUTPUT0",
        "MODE",
        "plain",
        "add_sub",
        "triton_x",
        "sequence_id",
        "binary_data_output",
    ),
    *(
        "FP32",
        "INT8",
        "BYTES",
        "BOOL",
        "FP16",
        "BF16",
        "UINT64",
        "NOTHING",
        "-1",
        "0",
        "1",
        "99999999999",
    ),
    *("triton_python_backend_shm_region_0", "nan", "null", "true", "[]"),
]
VALUES = [
    None,
    True,
    False,
    [],
    {},
    [[]],
    [None],
    {"a": {}},
    {"": ""},
    [[[1], 2], 3],
    *NUMBERS,
    *TEXTS,
]
NAMES = [
    *(
        "id",
        "inputs",
        "outputs",
        "parameters",
        "name",
        "shape",
        "datatype",
        "data",
        "binary_data_size",
    ),
    *("binary_data", "classification", "shared_memory_region", "shared_memory_offset"),
    *(
        "shared_memory_byte_size",
        "sequence_id",
        "sequence_start",
        "sequence_end",
        "priority",
        "timeout",
    ),
    *(
        "ready",
        "config",
        "file:1/model.py",
        "file:../../x",
        "file:/etc/x",
        "unload_dependents",
        "key",
    ),
    *(
        "offset",
        "byte_size",
        "raw_handle",
        "device_id",
        "log_file",
        "log_verbose_level",
        "log_format",
    ),
    *(
        "trace_level",
        "trace_rate",
        "trace_count",
        "trace_file",
        "log_frequency",
        "text_input",
        "INPUT0",
    ),
]


def _place(random, document):
    """Somewhere in a document: what holds it, and the key; None and None for the document itself."""
    holder, key, found = None, None, document
    while isinstance(found, dict | list) and found and random.random() < 0.8:
        holder = found
        key = (
            random.choice(list(found)) if isinstance(found, dict) else random.randrange(len(found))
        )
        found = holder[key]
    return holder, key


def spoiled(random, document):
    """A copy with one to four changes of its structure."""
    document = copy.deepcopy(document)
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        holder, key = _place(random, document)
        if holder is not None:
            _change(random, holder, key)
        elif random.random() < 0.2:
            document = _value(random)
    return document


def _value(random):
    """Return a value that may be changed without changing others."""
    return copy.deepcopy(random.choice(VALUES))


def _change(random, holder, key):
    kind = random.randrange(7)
    if kind == 0:
        holder[key] = _value(random)
    elif kind == 1:
        del holder[key]
    elif kind == 2:
        value = holder[key]
        for _ in range(random.choice((1, 2, 50, 101, 400))):
            value = [value]
        holder[key] = value
    elif kind == 3 and isinstance(holder, list):
        # The same object again: a copy of a very deep value would be too deep for Python itself.
        holder.extend([holder[key]] * random.choice((1, 2, 100)))
    elif kind == 4 and isinstance(holder, dict):
        holder[random.choice(NAMES)] = _value(random)
    elif kind == 5 and isinstance(holder, dict):
        holder[random.choice(NAMES + TEXTS)] = holder.pop(key)
    else:
        holder[key] = random.choice(NUMBERS)


def as_json(random, document):
    """Its text: mostly JSON, with members twice, NaN and lone surrogates as they come."""
    try:
        text = json.dumps(document).encode()
    except RecursionError:
        return b'{"inputs":' + b"[" * 3000
    if random.random() < 0.05:
        text = text.replace(b'"inputs"', b'"inputs": [], "inputs"', 1)
    return text


def damaged(random, data):
    """Bytes with some of them changed, left out, doubled or cut."""
    data = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 3, 8))):
        if not data:
            return bytes(random.randbytes(8))
        at = random.randrange(len(data))
        kind = random.randrange(7)
        if kind == 0:
            data[at] ^= 1 << random.randrange(8)
        elif kind == 1:
            data[at] = random.choice((0, 1, 0x7F, 0x80, 0xFF, 0x0A, 0x0D, 0x22, 0x5B, 0x7B))
        elif kind == 2:
            del data[at : at + random.randrange(1, 9)]
        elif kind == 3:
            data[at:at] = random.randbytes(random.randrange(1, 9))
        elif kind == 4:
            del data[at:]
        elif kind == 5:
            data[at:at] = data[at : at + random.randrange(1, 64)]
        else:
            data[at : at + 4] = struct.pack("<I", random.choice((2**31, 2**32 - 1, 0, 1)))
    return bytes(data)
