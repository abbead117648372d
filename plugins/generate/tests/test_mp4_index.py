"""mp4_index: what the index of a file may have, wherever a reader would find its tables."""

import struct

import pytest
from core_generate.mp4_index import claims_more


def box(name, *parts):
    payload = b"".join(parts)
    return struct.pack(">I4s", 8 + len(payload), name) + payload


def table(name, *numbers):
    return box(name, bytes(4), struct.pack(f">{len(numbers)}I", *numbers))


def sizes(count):
    """A table of samples that all have one byte."""
    return table(b"stsz", 1, count)


def trak(*parts):
    return box(b"trak", *parts)


def claims(data):
    """Return how many entries a file claims, at most 100,000."""
    least, most = 0, 100_000
    while least < most:
        middle = (least + most) // 2
        if claims_more(data, middle):
            least = middle + 1
        else:
            most = middle
    return least


def test_tables_of_all_tracks_and_fragments_count_together():
    moov = box(b"moov", trak(sizes(10)), box(b"udta", trak(sizes(5))))
    moof = box(b"moof", box(b"traf", box(b"trun", bytes(4), struct.pack(">I", 7))))

    assert claims(box(b"ftyp", b"isom") + moov + moof + box(b"mdat", bytes(100))) == 22


def test_media_data_does_not_count():
    large = struct.pack(">I4sQ", 1, b"mdat", 16 + 20) + sizes(9)

    assert claims(box(b"mdat", sizes(90)) + large + box(b"moov", sizes(13))) == 13


def test_what_follows_a_damaged_box_counts():
    assert claims(struct.pack(">I4s", 3, b"mdat") + sizes(40)) == 40


def test_a_box_that_ends_with_the_file():
    assert claims(struct.pack(">I4s", 0, b"moov") + sizes(40)) == 40
    assert claims(struct.pack(">I4s", 1 << 31, b"moov") + sizes(4)[:-1]) == 1
    assert not claims_more(b"", 0)


@pytest.mark.parametrize("name", [b"free", b"skip", b"wide"])
def test_padding_counts_since_without_an_index_it_is_read_as_one(name):
    assert claims(box(b"ftyp", b"isom") + box(name, box(b"mvhd"), trak(sizes(40)))) == 40


def test_each_edit_repeats_the_samples_of_a_track():
    edits = table(b"elst", 3, *(9 * [1]))

    assert claims(box(b"moov", trak(sizes(10), box(b"edts", edits)))) == 30


def test_one_edit_repeats_nothing():
    assert claims(box(b"moov", trak(sizes(10), box(b"edts", table(b"elst", 1, 9, 0, 65536))))) == 10


def test_samples_of_duration_1_have_the_entries_of_their_chunks():
    chunks = table(b"stco", 4, 0, 0, 0, 0)
    of_chunk = table(b"stsc", 2, *(1, 160_000, 1), *(2, 320_000, 1))

    short = box(b"moov", trak(table(b"stts", 1, 640_000, 1), sizes(0), chunks, of_chunk))
    usual = box(b"moov", trak(table(b"stts", 1, 640_000, 1_024), sizes(10), chunks, of_chunk))

    assert claims(short) == 4 * 2_000
    assert claims(usual) == 10


def test_a_table_of_chunks_that_is_cut_off():
    data = trak(table(b"stts", 1, 9, 1), table(b"stco", 1, 0), table(b"stsc", 1_000, 1, 320))

    assert claims(data[:-1]) < 10
    assert claims(data) < 10


def test_tables_of_chunks_that_overlap_are_not_all_read():
    data = trak(table(b"stts", 1, 9, 1)) + 200 * (b"stsc" + struct.pack(">II", 0, 1_000))

    assert claims_more(data, 10_000)


def test_a_compressed_index_is_one_that_cannot_be_counted():
    assert claims_more(box(b"moov", box(b"cmov", box(b"dcom", b"zlib"))), 100_000)


def test_more_boxes_or_tables_than_entries_are_too_many():
    assert claims_more(101 * box(b"abcd"), 100)
    assert not claims_more(100 * box(b"abcd"), 100)
    assert claims_more(box(b"moov", 101 * b"stsz"), 100)
    assert claims_more(box(b"moov", 101 * sizes(0)), 100)
