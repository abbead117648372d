"""The format of a capture: what is written is read, and damage costs only the records that it hits."""

import struct
import zlib

import orjson
import pytest
from core_capture.recording.files import CaptureFiles
from core_capture.records.reader import FIRST_LINE, CaptureReader
from core_capture.records.record import Damaged, Record, RecordedMessage, decode, encode

from core.errors import CoreError


def record(number=1, **more):
    data = [RecordedMessage(5, b"request %d" % number)]
    head = "POST /v2/models/m/infer?x HTTP/1.1\r\nHost: a:b\r\nX-Name:  one two \r\n"
    return Record(number, "http", head, "m", received=data, duration_ns=10, status=200, **more)


@pytest.mark.parametrize(
    ("written", "target", "path"),
    [
        ("http://a:1/v2/x?y=1", "/v2/x?y=1", "/v2/x"),
        ("HTTPS://a", "/", "/"),
        ("http://a?b", "/?b", "/"),
        ("/v2/x?y=http://b/c", "/v2/x?y=http://b/c", "/v2/x"),
        ("*", "*", "*"),
    ],
)
def test_a_target_is_a_path_without_a_host(written, target, path):
    found = Record(1, "http", f"GET {written} HTTP/1.1\r\n")

    assert (found.target, found.path) == (target, path)


@pytest.fixture
def folder(tmp_path):
    """A folder with three records in one file; `file` is its path."""
    files = CaptureFiles(str(tmp_path), 0, 1 << 20, 1 << 20)
    for number in (1, 2, 3):
        files.write(encode(record(number)))
    files.close()
    return tmp_path


def only_file(folder):
    (found,) = folder.glob("*.corecap")
    return found


def times(reader):
    return [each.time_ns for each in reader.records()]


def test_a_record_is_read_as_it_was_written():
    answers = [RecordedMessage(7, b""), RecordedMessage(9, b"\0\xff")]
    one = record(
        answer_head="HTTP/1.1 200 OK\r\nA: \xff\r\n",
        sent=answers,
        has_answer=True,
        cut=True,
        redacted=["x"],
        worker=3,
        caller="anna",
        client="1.2.3.4:5",
    )

    pieces = encode(one)

    assert decode(b"".join(pieces[1:])) == one


def test_heads_have_names_and_values():
    found = record(answer_head="HTTP/1.1 200 OK\r\nA: b\r\n")

    assert (found.method, found.target, found.path) == (
        "POST",
        "/v2/models/m/infer?x",
        "/v2/models/m/infer",
    )
    assert found.fields == [("Host", "a:b"), ("X-Name", "one two")]
    assert found.answer_fields == [("A", "b")]
    assert record(answer_head="grpc-message: a: b\r\n").answer_fields == [("grpc-message", "a: b")]


def test_a_reader_of_thirty_lines_reads_a_file(folder):
    """What docs/operate/capture.md says about the format, without the code of the plugin."""
    data = only_file(folder).read_bytes()
    at = data.index(b"\n") + 1
    found = []
    while at + 12 <= len(data):
        marker, size, checksum = struct.unpack_from("<4sII", data, at)
        payload = data[at + 12 : at + 12 + size]
        assert marker == b"\xc0REC" and zlib.crc32(payload) == checksum
        (length,) = struct.unpack_from("<I", payload)
        fields = orjson.loads(payload[4 : 4 + length])
        ((_, size_of_message),) = fields["received"]
        found.append(payload[4 + length :][:size_of_message])
        at += 12 + size

    assert data.startswith(b"core capture 1\n")
    assert found == [b"request 1", b"request 2", b"request 3"]


@pytest.mark.parametrize("lost", [1, 20, 60])
def test_a_torn_last_record_is_skipped(folder, lost):
    file = only_file(folder)
    file.write_bytes(file.read_bytes()[:-lost])
    reader = CaptureReader(folder)

    assert times(reader) == [1, 2]
    (loss,) = reader.losses
    assert "incomplete" in loss.reason and str(file) in str(loss)


def test_damage_in_the_middle_costs_one_record(folder):
    file = only_file(folder)
    data = bytearray(file.read_bytes())
    data[data.index(b"request 2")] ^= 1
    file.write_bytes(data)
    reader = CaptureReader(folder)

    assert times(reader) == [1, 3]
    assert [each.reason for each in reader.losses] == ["a record has a wrong checksum"]


def test_a_damaged_size_costs_one_record(folder):
    file = only_file(folder)
    data = bytearray(file.read_bytes())
    second = data.index(b"\xc0REC", len(FIRST_LINE) + 1)
    data[second + 4 : second + 8] = b"\xff\xff\xff\x7f"
    file.write_bytes(data)
    reader = CaptureReader(folder)

    assert times(reader) == [1, 3]
    assert len(reader.losses) == 1


def test_a_record_of_a_later_form_is_skipped(folder):
    payload = struct.pack("<I", 2) + b"{}"
    with only_file(folder).open("ab") as file:
        file.write(struct.pack("<4sII", b"\xc0REC", len(payload), zlib.crc32(payload)) + payload)
    reader = CaptureReader(folder)

    assert times(reader) == [1, 2, 3]
    assert "unknown form" in reader.losses[0].reason


def test_records_without_messages_are_in_the_order_of_their_beginnings(tmp_path):
    files = CaptureFiles(str(tmp_path), 0, 1 << 20, 1 << 20)
    for number in (2, 3, 1):
        files.write(encode(record(number)))
    reader = CaptureReader(tmp_path)

    places = reader.places()

    assert [each.time_ns for _, each in places] == [1, 2, 3]
    assert places[0][1].received == [RecordedMessage(5, b"")]
    assert reader.read(places[0][0]).body == b"request 1"


def test_a_file_that_a_server_has_just_begun_has_no_records(folder):
    (folder / "begun.corecap").touch()
    reader = CaptureReader(folder)

    assert times(reader) == [1, 2, 3]
    assert reader.losses == []


def test_what_is_no_capture_is_refused(tmp_path):
    with pytest.raises(CoreError, match="no files of a capture"):
        CaptureReader(tmp_path)
    with pytest.raises(CoreError, match="there is no capture"):
        CaptureReader(tmp_path / "absent")
    (tmp_path / "other.corecap").write_bytes(b"something else")
    with pytest.raises(CoreError, match="no file of a capture"):
        list(CaptureReader(tmp_path).records())


def test_files_are_bounded_and_the_oldest_are_removed(tmp_path):
    files = CaptureFiles(str(tmp_path), 0, 8000, 2000, workers=2)
    other = tmp_path / "capture-20200101T000000-w1-1-000001.corecap"
    other.write_bytes(b"x" * 5000)

    sizes = []
    for number in range(200):
        files.write(encode(record(number)))
        mine = [each for each in tmp_path.iterdir() if each != other]
        sizes.append(sum(each.stat().st_size for each in mine))
        assert all(each.stat().st_size <= 2000 for each in mine)
    files.close()

    assert 5000 < max(sizes) <= 8000
    assert other.exists()  # of another worker
    found = times(CaptureReader(tmp_path / sorted(mine)[0].name))
    assert times(CaptureReader(sorted(mine)[-1]))[-1] == 199 and found[0] > 0


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_the_files_of_more_workers_than_now_are_removed_too(tmp_path, workers):
    for worker in range(4):
        name = f"capture-20200101T000000-w{worker}-1-000001.corecap"
        (tmp_path / name).write_bytes(b"x" * 2000)
    kept = tmp_path / "capture-of-mine-w3-notes.corecap"
    kept.write_bytes(b"x" * 5000)

    for worker in range(workers):
        files = CaptureFiles(str(tmp_path), worker, 6000 // workers, 1000, workers)
        for number in range(100):
            files.write(encode(record(number)))
        files.close()

    mine = [each for each in tmp_path.iterdir() if each != kept]
    assert sum(each.stat().st_size for each in mine) <= 6000
    assert not list(tmp_path.glob("capture-20200101*")) and kept.exists()


def test_a_record_larger_than_a_file_has_a_file_of_its_own(tmp_path):
    files = CaptureFiles(str(tmp_path), 0, 100_000, 1000)
    large = record(2)
    large.received = [RecordedMessage(0, bytes(5000))]
    for each in (record(1), large, record(3)):
        files.write(encode(each))
    files.close()

    assert [times(CaptureReader(each)) for each in sorted(tmp_path.iterdir())] == [[1], [2], [3]]


def test_a_file_that_was_removed_is_followed_by_another(tmp_path):
    files = CaptureFiles(str(tmp_path), 0, 1 << 20, 1 << 20)
    files.write(encode(record(1)))
    only_file(tmp_path).unlink()
    files.write(encode(record(2)))

    assert times(CaptureReader(tmp_path)) == [2]


def test_only_the_owner_reads_the_files(folder):
    assert only_file(folder).stat().st_mode & 0o077 == 0


def test_a_message_that_is_too_large_for_the_format_is_refused(monkeypatch):
    monkeypatch.setattr("core_capture.records.record.MOST_BYTES", 100)

    with pytest.raises(Damaged, match="too large"):
        encode(record())


def test_messages_of_a_client_are_no_records_of_a_tail(tmp_path):
    forged = b"".join(encode(record(99)))
    one = record(1)
    one.received = [RecordedMessage(0, forged * 20)]
    files = CaptureFiles(str(tmp_path), 0, 1 << 20, 1 << 20)
    for each in (one, record(2), record(3)):
        files.write(encode(each))
    files.close()
    last = len(b"".join(encode(record(3))))

    for most_bytes in (last, 2 * last, 2 * last + 1, 5 * last):
        found, left_out = CaptureReader(tmp_path).tail(most_bytes)

        assert [each.time_ns for _, each in found] == [3, 2][: min(2, most_bytes // last)]
        assert left_out > len(forged) * 20


@pytest.mark.parametrize(
    "wrong",
    [
        {"status": "200"},
        {"model": 5},
        {"time_ns": None},
        {"head": ["x"]},
        {"cut": 0},
        {"redacted": [1]},
    ],
)
def test_a_member_of_a_wrong_type_is_damage(wrong):
    one = record()
    for name, value in wrong.items():
        setattr(one, name, value)

    with pytest.raises(Damaged, match=f"{next(iter(wrong))} is "):
        decode(b"".join(encode(one)[1:]))
