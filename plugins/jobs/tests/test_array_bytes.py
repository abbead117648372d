"""Arrays in the bytes of strangers: nothing grows, and what is damaged is refused."""

import io
import tracemalloc
import zipfile
import zlib

import numpy as np
import pytest
from core_jobs.offline.inputs.array_bytes import array_in, arrays_in

from core.errors import CoreError

from .test_files import npy, npz


def test_a_member_unpacks_to_no_more_bytes_than_it_declares():
    plain = npy(np.zeros(0, np.float32))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data.npy", plain + bytes(16 << 20))
    size, check = (len(plain) + (16 << 20)).to_bytes(4, "little"), zlib.crc32(plain)
    honest = file.getvalue()
    lying = honest.replace(size, len(plain).to_bytes(4, "little"))
    declared = archive.getinfo("data.npy").CRC.to_bytes(4, "little")
    whole = lying.replace(declared, check.to_bytes(4, "little"))

    tracemalloc.start()
    with pytest.raises(CoreError, match="Bad CRC-32"):
        arrays_in(lying, "a.npz")
    assert arrays_in(whole, "a.npz")["data"].size == 0
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert len(honest) < 1 << 15 and most < 2 << 20


def header(text):
    """Return an .npy file with that header and no elements."""
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


@pytest.mark.parametrize(
    "text",
    [
        b"{'descr': '<f4', 'shape': (2,",
        b"-" * 9000 + b"1",
        b"(" * 9000,
        b"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (0,), }",
        b"{'descr': '<f4,<f4', 'fortran_order': False, 'shape': (0,), }",
        b"{'descr': '|V0', 'fortran_order': False, 'shape': (9,), }",
        b"{'descr': 'nothing', 'fortran_order': False, 'shape': (0,), }",
        b"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 1%s), }" % (b"0" * 999),
        b"{'descr': '<f4', 'fortran_order': False, 'shape': (0%s), }" % (b",0" * 99),
        b"{'descr': '<f4', 'fortran_order': False, 'shape': (1,,2), }",
        b"{'descr': '<f4', 'descr': '<f4', 'shape': (0,), }",
        b"{'descr': '<f4', 'fortran_order': False, 'shape': (0,)%s" % (b" " * 16_000),
    ],
)
def test_a_hostile_header_of_an_array_is_refused(text):
    with pytest.raises(CoreError, match=r"'a\.npy' cannot be read as \.npy"):
        array_in(header(text), "a.npy")


def test_headers_of_other_writers_are_read():
    text = b'{"shape":(0, 3), "fortran_order":True,\n"descr":"float32"}'

    assert array_in(header(text), "a.npy").shape == (0, 3)


@pytest.mark.parametrize("offset", [10, 2**32 - 2])
def test_an_npz_with_a_damaged_directory_is_refused(offset):
    whole = npz(data=np.zeros(2))
    end = whole.rindex(b"PK\x05\x06")
    damaged = whole[: end + 16] + offset.to_bytes(4, "little") + whole[end + 20 :]

    with pytest.raises(CoreError, match=r"'a\.npz' cannot be read as \.npz"):
        arrays_in(damaged, "a.npz")


def test_an_npz_with_a_name_that_is_no_text_is_refused():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("\u00e9.npy", npy(np.zeros(2)))
    data = file.getvalue()
    at = data.index("\u00e9".encode())

    with pytest.raises(CoreError, match=r"'a\.npz' cannot be read as \.npz"):
        arrays_in(data[:at] + b"\xff\xff" + data[at + 2 :], "a.npz")


def test_an_npz_of_very_many_members_is_refused_before_it_is_opened(monkeypatch):
    file, entry = io.BytesIO(), npy(np.zeros(0, np.float32))
    with zipfile.ZipFile(file, "w") as archive:
        for number in range(1001):
            archive.writestr(f"{number}.npy", entry)
    monkeypatch.setattr(zipfile, "ZipFile", None)

    with pytest.raises(CoreError, match="it has 1001 members; at most 1000 are accepted"):
        arrays_in(file.getvalue(), "a.npz")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_npz_with_two_arrays_of_one_name_is_refused():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for _ in range(2):
            archive.writestr("a.npy", npy(np.zeros(2)))

    with pytest.raises(CoreError, match=r"two members 'a\.npy'"):
        arrays_in(file.getvalue(), "a.npz")
