"""mp4_index: the entries that tables claim, wherever a reader would find them."""

import struct

from core_generate.mp4_index import entries


def box(name, *parts):
    payload = b"".join(parts)
    return struct.pack(">I4s", 8 + len(payload), name) + payload


def sizes(count):
    return box(b"stsz", bytes(4), struct.pack(">II", 1, count))


def test_tables_of_all_tracks_and_fragments_count_together():
    moov = box(b"moov", box(b"trak", sizes(10)), box(b"udta", box(b"trak", sizes(5))))
    moof = box(b"moof", box(b"traf", box(b"trun", bytes(4), struct.pack(">I", 7))))

    assert entries(box(b"ftyp", b"isom") + moov + moof + box(b"mdat", bytes(100))) == 22


def test_media_data_does_not_count():
    large = struct.pack(">I4sQ", 1, b"mdat", 16 + 20) + sizes(9)

    assert entries(box(b"mdat", sizes(9)) + large + box(b"moov", sizes(3))) == 3


def test_what_follows_a_damaged_box_counts():
    assert entries(struct.pack(">I4s", 3, b"mdat") + sizes(4)) == 4


def test_a_box_that_ends_with_the_file():
    assert entries(struct.pack(">I4s", 0, b"moov") + sizes(4)) == 4
    assert entries(struct.pack(">I4s", 1 << 31, b"moov") + sizes(4)[:-1]) == 0
    assert entries(b"") == 0
