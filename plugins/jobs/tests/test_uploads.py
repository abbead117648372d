"""Uploaded files as requests: how many they are, what they take, and what does not fit."""

import tracemalloc

import numpy as np
import pytest
from core_jobs.http.files import _held, _split, _unpacked_bytes
from core_jobs.http.submission import held_by_lines, lines
from core_jobs.job import Origin
from core_jobs.offline.inputs import uploads
from core_jobs.offline.inputs.fitting import fitted
from core_jobs.offline.inputs.uploads import Upload, most_requests, request_in, split

from core import dtypes
from core.config import InputSpec, Signature
from core.errors import CoreError

from .test_array_bytes import header
from .test_files import npy, npz


def signature(dtype, *dims, most_rows=0):
    return Signature("m", 1, {"data": InputSpec("data", dtype, dims)}, {}, most_rows, False)


TEXTS = signature(dtypes.BYTES, 1, most_rows=8)
NUMBERS = signature(dtypes.FP32, 1, most_rows=8)
COLUMN = np.arange(1000, dtype=np.float32).reshape(1000, 1)
FILES = [
    (TEXTS, "a.txt", b"\n".join([b"a"] * 1000)),
    (TEXTS, "b.TXT", b"a\n" * 1000),
    (TEXTS, "a.jsonl", b'{"data":"a"}\n' * 1000),
    (TEXTS, "a.jpg", b"a\nb"),
    (NUMBERS, "a.npy", npy(COLUMN)),
    (NUMBERS, "a.npz", npz(data=COLUMN)),
    (signature(dtypes.FP32, -1, 1), "whole.npy", npy(COLUMN)),
]


@pytest.mark.parametrize("rows", [1, 7])
@pytest.mark.parametrize(("model", "name", "data"), [*FILES, (TEXTS, "empty.txt", b"")])
def test_requests_are_counted_before_they_are_made(model, name, data, rows):
    file = Upload(name, memoryview(data))

    assert most_requests(file, model, rows) == len(list(split(file, model, rows)))


@pytest.mark.parametrize(("model", "name", "data"), FILES)
def test_requests_take_no_more_memory_than_is_counted(model, name, data):
    file = Upload("n" * 240 + name, memoryview(data))
    counted = _unpacked_bytes([file], 1 << 20) + _held([file], model, 1)
    _split([file], model, 1, 1 << 20)  # what Python keeps from now on is no part of the measurement

    tracemalloc.start()
    bodies, origins = _split([file], model, 1, 1 << 20)
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()

    assert bodies and taken <= counted + 4096
    assert all(each.file is file.name for each in origins)


def test_lines_of_a_batch_take_no_more_memory_than_is_counted():
    body = b'{"inputs":[]}\n' * 10_000
    lines(body)

    tracemalloc.start()
    found = lines(body)
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()

    assert len(found) == 10_000 and taken <= held_by_lines(body) + 4096


@pytest.mark.parametrize("piece", [1, 2, 3, 1 << 20])
@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"\n", b"\n\na\n\n\nb\n", b"a\nb", b"\nab\n\ncd\n\n"),
        *(b"\r\n", b"a\r\n\r\nb c\r\n \t\r\n", b" \v\f\n  d\n ", b" a \n  \n\r b"),
    ],
)
def test_empty_lines_take_no_memory(monkeypatch, data, piece):
    monkeypatch.setattr(uploads, "_PIECE", piece)
    filled = [each for each in data.split(b"\n") if each.strip()]

    found = uploads.count_filled_lines(memoryview(data))
    assert found == len(filled)
    assert type(found) is int  # the server's account of memory goes into JSON
    assert held_by_lines(data) == len(filled) * held_by_lines(b"a")


def test_blank_lines_of_a_file_count_as_no_requests():
    data = b'{"data":[1]}\r\n' + b"\r\n" * 1_100_000

    assert _held([Upload("a.jsonl", memoryview(data))], NUMBERS, 1) < 1 << 20


def test_rows_are_refused_before_a_request_is_made_of_them():
    no_elements = header(
        b"{'descr': '<f4', 'fortran_order': False, 'shape': (1%s, 0), }" % (b"0" * 12)
    )
    with pytest.raises(CoreError, match="have 1000000000000 rows without any element"):
        _held([Upload("a.npy", memoryview(no_elements))], NUMBERS, 1)

    many = Upload("a.npy", memoryview(npy(np.zeros((600_000, 1), np.int8))))
    with pytest.raises(CoreError, match=r"at most 1000000 requests, which file 'a\.npy' exceeds"):
        _held([many, many], NUMBERS, 1)
    assert _held([many, many], NUMBERS, 2) < 1 << 30


def test_small_rows_of_an_archive_need_more_rows_in_a_request():
    file = Upload("a.npz", memoryview(npz(data=np.zeros((2000, 1), np.float32))))

    with pytest.raises(CoreError, match="put more rows in a request"):
        _split([file], NUMBERS, 1, 100_000)
    assert len(_split([file], NUMBERS, 8, 100_000)[0]) == 250


DEEP = b'{"data":%s"a"%s}' % (b"[" * 600, b"]" * 600)
NO_CHARACTER = npy(np.array(["a"]))[:-4] + b"\xff\xff\xff\x7f"


@pytest.mark.parametrize(
    ("name", "form", "dtype", "data", "text"),
    [
        ("deep.jsonl", ".jsonl", dtypes.BYTES, DEEP, "deep"),
        ("half.npy", ".npy", dtypes.BYTES, npy(np.array(["\ud800"])), "Unicode does not have"),
        ("none.npy", ".npy", dtypes.BYTES, NO_CHARACTER, "Unicode does not have"),
        ("text.npy", ".npy", dtypes.BF16, npy(np.array([b"abcd"])), "elements of |S4"),
        ("void.npy", ".npy", dtypes.BF16, npy(np.zeros(1, "V4")), "elements of |V4"),
        ("time.npy", ".npy", dtypes.FP32, npy(np.zeros(1, "M8[s]")), "elements of datetime64"),
        ("ragged.jsonl", ".jsonl", dtypes.BYTES, b'{"data": [["a"], ["b", "c"]]}', "lengths"),
    ],
)
def test_a_part_that_does_not_fit_is_refused(name, form, dtype, data, text):
    with pytest.raises(CoreError) as refused:
        request_in(data, Origin(name, "", form, ""), signature(dtype, -1))

    assert text in refused.value.message


@pytest.mark.parametrize("text", ['[%s"%s"]', '[[%s"%s"]]', '[[%s1],"%s"]', '[%s["%s"]]'])
def test_a_long_text_among_numbers_takes_no_memory_for_each_of_them(text):
    line = b'{"data":%s}' % (text % ("1," * 2000, "a" * 2000)).encode()
    origin, model = Origin("a.jsonl", "", ".jsonl", ""), signature(dtypes.FP32, -1)

    tracemalloc.start()
    with pytest.raises(CoreError, match="input 'data' of FP32 got"):
        request_in(line, origin, model)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert most < 1 << 20  # an array of texts would be 16 MB


def test_texts_of_numpy_become_utf_8():
    found = fitted(InputSpec("data", dtypes.BYTES, (2,)), False, np.array(["größe", ""]))

    assert found.array.tolist() == ["größe".encode(), b""]


def test_whole_numbers_become_bf16():
    found = fitted(InputSpec("data", dtypes.BF16, (2,)), False, np.array([1, -2]))

    assert found.array.tolist() == [0x3F80, 0xC000]
