"""Arenas and layouts: the parts of the channel, tested separately."""

import fcntl
import gc
import json
import math
import mmap
import os
import random

import numpy as np
import pytest
from backend_python import arena, items, layout, protocol, strings, system
from backend_python.api.response import InferenceResponse
from backend_python.api.tensor import Tensor
from backend_python.child.messages import AnswerEncoder
from backend_python.protocol import ProtocolError
from hypothesis import given
from hypothesis import strategies as st

from core.native import strings as native

# arenas ------------------------------------------------------------------------


@pytest.fixture
def fd():
    fd = system.create_memory("test", 1 << 16)
    yield fd
    os.close(fd)


def sent(sender, data):
    offset = sender.allocate(len(data))
    sender.memory[offset : offset + len(data)] = data
    return offset


@pytest.mark.parametrize("size", [1, 64, 1 << 20])
@pytest.mark.parametrize("inline", [True, False])
@pytest.mark.parametrize("writable", [True, False])
def test_tensors_are_read_as_they_were_written(fd, size, inline, writable):
    sender, receiver = arena.Sender(fd), arena.Receiver(fd, writable=writable)
    data = random.Random(size).randbytes(size)
    offset = protocol.INLINE if inline else sent(sender, data)
    content = b"fixed" + b"rest" + (data if inline else b"")

    found, at, end = receiver.tensors(content, len(b"fixed"), offset, size)

    assert content[len(b"fixed") : end] == b"rest"
    assert bytes(memoryview(found)[at : at + size]) == data
    assert memoryview(found).readonly != writable


def test_inline_tensors_longer_than_their_message_are_refused(fd):
    receiver = arena.Receiver(fd, writable=False)

    for size in (1, 2**40):
        with pytest.raises(ProtocolError):
            receiver.tensors(bytes(protocol.PLACE.size), protocol.PLACE.size, protocol.INLINE, size)


def test_a_region_is_released_with_its_last_view(fd):
    sender, receiver = arena.Sender(fd), arena.Receiver(fd, writable=True)
    size = 1 << 10
    offset = sent(sender, bytes(size))

    region = receiver.take(offset, size)
    view = np.ndarray((4,), np.float32, region, 64)
    tail = view[2:]
    del region, view
    gc.collect()
    assert receiver.drain_released(9) == ()
    del tail
    gc.collect()
    assert receiver.drain_released(9) == (offset,)


def test_a_view_stays_valid_while_the_arena_grows_and_is_closed(fd):
    sender, receiver = arena.Sender(fd), arena.Receiver(fd, writable=False)
    first = receiver.take(sent(sender, b"a" * (1 << 16)), 1 << 16)

    second = receiver.take(sent(sender, b"b" * (1 << 22)), 1 << 22)
    sender.close()
    receiver.close()

    assert bytes(memoryview(first)) == b"a" * (1 << 16)
    assert bytes(memoryview(second)) == b"b" * (1 << 22)


def test_regions_never_overlap_and_are_used_again(fd):
    sender = arena.Sender(fd)
    chance = random.Random(1)
    used = {}
    for _ in range(3000):
        if used and chance.random() < 0.5:
            offset = chance.choice(list(used))
            del used[offset]
            sender.free([offset])
        else:
            size = chance.choice([1, 100, 5000, 70_000])
            offset = sender.allocate(size)
            assert offset % arena.ALIGNMENT == 0
            for other, length in used.items():
                assert offset + size <= other or other + length <= offset
            used[offset] = size
    sender.free(list(used))

    assert sender.used == 0
    assert sender.allocate(1) == arena.ALIGNMENT
    assert os.fstat(fd).st_size < 64 << 20


def test_the_mark_is_what_was_written_last_whatever_the_regions_hold(fd):
    sender, receiver = arena.Sender(fd), arena.Receiver(fd, writable=False)
    assert receiver.mark == 0

    for number in (1, 2**63):
        sender.mark(number)
        sent(sender, b"x" * (1 << 20))
        assert receiver.mark == number


def test_a_region_that_is_not_in_use_cannot_be_released(fd):
    sender = arena.Sender(fd)
    offset = sender.allocate(10)
    sender.free([offset])

    for wrong in (offset, 7):
        with pytest.raises(ProtocolError):
            sender.free([wrong])


def test_a_region_outside_of_the_arena_is_refused(fd):
    receiver = arena.Receiver(fd, writable=False)

    with pytest.raises(ProtocolError):
        receiver.take(1 << 16, 1)
    with pytest.raises(ProtocolError):
        receiver.take(2**63, 2**62)


@pytest.mark.skipif(system.PORTABLE, reason="only Linux seals memory")
def test_an_arena_can_grow_but_not_shrink(fd):
    os.ftruncate(fd, 1 << 20)

    with pytest.raises(PermissionError):
        os.ftruncate(fd, 1 << 16)
    with pytest.raises(PermissionError):
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW)


def test_memory_of_a_peak_is_given_back(fd):
    sender = arena.Sender(fd)
    sender.free([sent(sender, b"x" * (64 << 20))])
    assert os.fstat(fd).st_blocks * 512 >= 64 << 20

    for _ in range(600):
        sender.free([sent(sender, b"x" * 100)])

    assert os.fstat(fd).st_blocks * 512 <= 8 << 20
    assert sender.memory[arena.ALIGNMENT :][:4] == b"xxxx"
    assert len(sender.memory) >= 64 << 20  # it stays as large, without pages
    assert mmap.PAGESIZE


# layouts -----------------------------------------------------------------------


def test_tensors_lie_one_after_another_and_aligned():
    found = layout.request_places(
        [[["a", 11, [2, 1], 8], ["b", 13, [1], 5]], [["a", 11, [0], 0]]], 192
    )

    assert found == [
        [("a", 11, (2, 1), 0, 8, 0), ("b", 13, (1,), 64, 5, 0)],
        [("a", 11, (0,), 128, 0, 0)],
    ]


@pytest.mark.parametrize(
    "entry",
    [
        ["a", 11, [3], 8],  # bytes that are not those of the shape
        ["a", 11, [2], 12],
        ["a", 0, [2], 8],  # no datatype
        ["a", 99, [2], 8],
        ["a", 11, [-2], -8],
        ["a", 13, [1], -1],
        ["a", 13, [1], 65],  # beyond the region
        ["a", 11, [2**40, 2**40], 8],
    ],
    ids=str,
)
def test_a_tensor_that_cannot_be_is_refused(entry):
    with pytest.raises(ProtocolError):
        layout.request_places([[entry]], 64)


def test_answers_errors_and_gaps_keep_their_places():
    found = layout.answers([[[["y", 11, [1], 4]], None, "{}"], None, [[], [2, "no"], ""], True], 64)

    assert found == [
        ([("y", 11, (1,), 0, 4, 0)], None, "{}"),
        None,
        ([], (2, "no"), ""),
        True,
    ]


ENTRIES = st.lists(
    st.tuples(
        st.sampled_from(["a", "b"]), st.sampled_from([2, 11, 13]), st.lists(st.integers(0, 3))
    ),
    max_size=3,
)


def sized(entries):
    return [[n, d, shape, math.prod(shape) * (4 if d == 11 else 1)] for n, d, shape in entries]


@given(st.lists(st.lists(ENTRIES, min_size=1, max_size=3), max_size=4), st.data())
def test_items_have_the_places_that_the_whole_layout_has(kinds, data):
    known = items.Known(layout.request_item)
    for batch in kinds:
        batch = data.draw(st.lists(st.sampled_from(batch), max_size=5))
        entries = [sized(each) for each in batch]
        expected = layout.request_places(entries, 1 << 20)

        laid = known.of(items.joined([protocol.to_json(each) for each in entries]), 1 << 20)

        assert json.loads(items.joined([protocol.to_json(each) for each in entries])) == entries
        assert [
            [p._replace(start=start + p.start) for p in item.places]
            for item, start in zip(laid.items, laid.starts, strict=True)
        ] == expected


def test_an_item_that_lies_beyond_its_region_is_refused_also_when_it_is_known():
    known = items.Known(layout.request_item)
    one = protocol.to_json([["a", 11, [2], 8]])
    known.of(items.joined([one, one]), 72)

    with pytest.raises(ProtocolError, match="item 1 of 8 bytes does not fit into its region"):
        known.of(items.joined([one, one]), 71)


@pytest.mark.parametrize("described", [b"", b"{}", b"[1", b"null"])
def test_a_layout_that_is_no_list_is_refused(described):
    with pytest.raises(ProtocolError, match="a layout is a list"):
        items.Known(layout.request_item).of(described, 64)


def test_items_without_their_separator_are_refused():
    one = protocol.to_json([["a", 11, [2], 8]])

    with pytest.raises(ValueError, match="Extra data"):
        items.Known(layout.request_item).of(b"[%s,%s]" % (one, one), 1 << 10)


def test_more_items_than_are_remembered_are_read_all_the_same():
    known = items.Known(layout.request_item)
    for n in [*range(600), *range(600)]:
        laid = known.of(b"[%s]" % protocol.to_json([["x", 11, [n], 4 * n]]), 1 << 20)

        assert laid.items[0].places[0].shape == (n,)


@pytest.mark.parametrize(
    ("item", "plain"),
    [
        ([[["y", 11, [1], 4]], None, ""], True),
        ([[["y", 11, [1], 4]], None, "{}"], False),
        ([[], [2, "no"], ""], False),
        (None, False),
        (True, False),
    ],
)
def test_an_answer_is_plain_if_it_is_no_more_than_tensors(item, plain):
    found = layout.answer_item(protocol.to_json(item))

    assert found.plain is plain
    assert [found.value] == layout.answers([item], 1 << 10)


def test_what_items_remember_is_what_they_said_first():
    encoder = AnswerEncoder()
    sizes = [*range(600), *range(600)]

    answers = [InferenceResponse([Tensor("x", np.zeros(n, np.float32))]) for n in sizes]
    told = [encoder.one(each, frozenset({"x"})).layout for each in answers]

    assert told == [protocol.to_json([[[["x", 11, [n], 4 * n]], None, ""]]) for n in sizes]


# strings -----------------------------------------------------------------------


@given(st.lists(st.one_of(st.binary(max_size=9), st.text(max_size=4)), max_size=12))
def test_strings_have_the_form_that_core_has(items):
    array = np.empty(len(items), object)
    array[:] = items

    data = strings.encode(array)

    assert data == native.encode(array)
    assert strings.decode(data, len(items)).tolist() == native.decode(data, len(items)).tolist()


@pytest.mark.parametrize(
    "data,count", [(b"", 1), (b"\1\0\0", 1), (b"\2\0\0\0a", 1), (b"\0\0\0\0", 0), (b"\xff" * 4, 1)]
)
def test_malformed_strings_are_refused(data, count):
    with pytest.raises(ValueError):
        strings.decode(data, count)
