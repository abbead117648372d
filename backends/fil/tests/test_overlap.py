"""Files of CatBoost whose parts overlap: a small file must not become large in memory."""

import struct

import numpy as np
import pytest
from backend_fil import headers
from backend_fil.catboost import Damaged, binary

VERSION = struct.pack("<I", len(binary.VERSION)) + binary.VERSION.encode()
ROOT = {0: "version", 1: "trees"}
FEATURE = {"features": ["feature"], "feature": {2: 0, 3: "borders"}}


def vector(form, *values):
    return struct.pack("<I", len(values)) + np.array(values, form).tobytes()


def file_of(parts):
    """Return a file of CatBoost, of parts by their names in their order.

    parts   bytes; a list of names of tables; or a table, field → number of 32 bits or name of a later part
    """
    places, size = {}, 4
    for name, part in parts.items():
        if isinstance(part, dict):
            size += 6 + 2 * max(part)  # its list of fields
        places[name] = size
        size += len(part) if isinstance(part, bytes) else 4 + 4 * len(part)
    made = struct.pack("<I", places["root"])
    for part in parts.values():
        values = [] if isinstance(part, bytes) else list(part)
        if isinstance(part, dict):
            at = {field: 4 + 4 * i for i, field in enumerate(part)}
            fields = [at.get(field, 0) for field in range(max(part) + 1)]
            head = struct.pack(
                f"<{2 + len(fields)}H", 4 + 2 * len(fields), 4 + 4 * len(at), *fields
            )
            made, values = made + head + struct.pack("<i", len(head)), list(part.values())
        else:
            made += part if isinstance(part, bytes) else struct.pack("<I", len(part))
        for value in values:
            value = places[value] - len(made) if isinstance(value, str) else value
            made += struct.pack("<I", value)
    assert len(made) == size
    return binary.MARK + struct.pack("<I", size) + made


def test_features_that_share_their_borders_are_refused():
    parts = {
        "root": ROOT,
        "version": VERSION,
        "trees": {0: 1, 5: "features"},
        "features": ["feature"] * 1000,
        "feature": FEATURE["feature"],
        "borders": vector("<f4", *range(1000)),
    }

    with pytest.raises(Damaged, match="its borders overlap"):
        binary.read(file_of(parts))

    found = binary.read(file_of({**parts, "features": ["feature"]}))
    assert found.bins.border.tolist() == list(range(1000))


def test_texts_that_overlap_are_refused():
    parts = {
        "root": {**ROOT, 2: "all"},
        "version": VERSION,
        "trees": {0: 1},
        "all": ["text"] * 1000,
        "text": {0: "name", 1: "content"},
        "name": vector("<u1", *b"params"),
        "content": vector("<u1", *b"{}" * 1000),
    }

    with pytest.raises(Damaged, match="its texts overlap"):
        binary.read(file_of(parts))

    assert binary.read(file_of({**parts, "all": ["text"]})).info == {"params": "{}" * 1000}


def trees_of(sizes, steps, leaves):
    """Return a file with trees of so many nodes, steps to their children, and a leaf of 0.5 for each node."""
    return file_of(
        {
            "root": ROOT,
            "version": VERSION,
            "trees": {
                0: 1,
                1: "asked",
                2: "sizes",
                5: "features",
                8: "values",
                10: "steps",
                11: "of",
            },
            "asked": vector("<i4", *[0] * len(steps)),
            "sizes": vector("<i4", *sizes),
            **FEATURE,
            "borders": vector("<f4", 0),
            "values": vector("<f8", *[0.5] * leaves),
            "steps": vector("<u4", *steps),
            "of": vector("<u4", *[min(each, leaves - 1) for each in range(len(steps))]),
        }
    )


def test_trees_that_share_leaves_are_refused():
    with pytest.raises(Damaged, match="its trees share the 2 leaves of the file"):
        binary.read(trees_of([1, 1, 1], [0, 0, 0], 2))

    assert len(binary.read(trees_of([1, 1, 1], [0, 0, 0], 3)).trees) == 3


def test_a_tree_that_has_a_leaf_twice_is_refused():
    root = 1 | 2 << 16  # to its children

    with pytest.raises(Damaged, match="a tree has 2 leaves, the file has 1"):
        binary.read(trees_of([3], [root, 0, 0], 1))


def test_a_check_without_enough_memory_names_it(monkeypatch, tmp_path):
    def exhausted(path, kind):
        raise MemoryError

    monkeypatch.setattr(headers, "content_of", exhausted)
    (tmp_path / "model.cbm").write_bytes(binary.MARK)

    with pytest.raises(headers.Unreadable, match="there is not enough memory"):
        headers.header_of(tmp_path / "model.cbm", "catboost")
