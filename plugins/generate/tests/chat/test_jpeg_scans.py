"""JPEG files of many scans take long to decode: they are refused before."""

import struct

import pytest
from core_generate.chat import FieldError
from core_generate.chat.media import check_image

FRAME = b"\xff\xc0\0\x0b\x08" + struct.pack(">HH", 480, 640) + b"\x01\x01\x11\0"
HEAD = b"\xff\xd8\xff\xe0\0\x04ab" + FRAME
SCAN = b"\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00"
END = b"\xff\xd9"


def in_segment(data):
    return b"\xff\xe1" + struct.pack(">H", 2 + len(data)) + data


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (HEAD + SCAN * 101 + END, "x: the image is a JPEG file of 101 scans or more"),
        (HEAD + SCAN + b"\xff\xfe\0\x02" * 10_000 + SCAN * 100, "of 10,000 segments or more"),
    ],
)
def test_a_file_of_more_is_refused(file, message):
    with pytest.raises(FieldError, match=message):
        check_image(file, "x")


@pytest.mark.parametrize(
    "file",
    [
        HEAD + SCAN * 100 + END,
        HEAD + SCAN + END + SCAN * 200,
        HEAD + in_segment(SCAN * 200) + SCAN + END,
    ],
    ids=["100 scans", "a video follows", "scans in a segment"],
)
def test_scans_of_the_image_count(file):
    assert check_image(file, "x") == file
