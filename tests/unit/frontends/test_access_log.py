"""The access log: one line for each request, with other writers, after rotation, and without a reader."""

import json
import os
import sys
import threading
import time
from collections import deque

import pytest

from core.errors import CoreError
from frontends.shared.access_log import LONGEST_TEXT, AccessLog, AccessLogEntry, iso8601
from frontends.shared.options import SharedOptions


@pytest.fixture
def path(tmp_path):
    return tmp_path / "access.log"


@pytest.fixture
def opened(path):
    """Open logs that end with the test."""
    logs = []

    def make(where=path, **options):
        logs.append(AccessLog(str(where), **options))
        return logs[-1]

    yield make
    for each in logs:
        each.close()


def entry(model="m", **more):
    found = AccessLogEntry("http", "127.0.0.1:5000", "/v2/models/m/infer", "POST")
    found.model = model
    for name, value in more.items():
        setattr(found, name, value)
    return found


def lines(path):
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def test_a_line_has_the_known_fields(opened, path):
    log = opened()
    found = entry(version="3", id="mine", caller="alice", bytes_in=7)
    found.belong("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    log.write(found, 200, 9)
    log.close()

    (line,) = lines(path)

    assert line.pop("time").endswith("Z")
    assert line.pop("duration_us") >= 0
    assert line == {
        "client": "127.0.0.1:5000",
        "protocol": "http",
        "method": "POST",
        "path": "/v2/models/m/infer",
        "model": "m",
        "version": "3",
        "id": "mine",
        "caller": "alice",
        "trace_id": "0af7651916cd43dd8448eb211c80319c",
        "status": 200,
        "bytes_in": 7,
        "bytes_out": 9,
    }


def test_an_entry_that_comes_while_the_writer_goes_to_sleep_is_written(opened, path):
    log = opened()

    class Queue(deque):
        """Gets a second entry just after the writer has found it empty, before it sleeps."""

        late = False

        def __bool__(self):
            found = len(self) > 0
            if not found and not Queue.late and sys._getframe(1).f_code.co_name == "_serve":
                Queue.late = True
                log.write(entry("second"), 200, 0)
            return found

    log._waiting = Queue()
    log.write(entry("first"), 200, 0)

    end = time.monotonic() + 5
    while len(lines(path)) < 2 and time.monotonic() < end:
        time.sleep(0.01)

    assert Queue.late
    assert [line["model"] for line in lines(path)] == ["first", "second"]


def test_unknown_fields_are_omitted(opened, path):
    log = opened()
    log.write(AccessLogEntry("grpc", "", "/x"), 0, 0)
    log.close()

    (line,) = lines(path)

    assert set(line) == {
        *("time", "client", "protocol", "path", "status", "duration_us", "bytes_in", "bytes_out")
    }


@pytest.mark.parametrize("name", ["a\nb", "a\r\0\x1b\x7f", "é\u2028\ud800", '"}{'])
def test_a_line_is_printable_ascii_whatever_is_in_it(opened, path, name):
    log = opened()
    log.write(entry(name, id=name), 200, 0)
    log.close()

    text = path.read_bytes()

    assert text.count(b"\n") == 1
    assert all(0x20 <= byte < 0x7F for byte in text.rstrip(b"\n"))
    assert json.loads(text)["model"] == name


def test_a_long_name_is_cut(opened, path):
    log = opened()
    log.write(entry("m" * 100_000), 200, 0)
    log.close()

    assert len(path.read_bytes()) < 2000


@pytest.mark.parametrize("name", ["id", "model", "path", "version"])
def test_of_a_long_text_no_more_waits_than_is_written(opened, name):
    """Clients choose these texts, as long as a body or a header, and many entries may wait."""
    log, found = opened(), entry()
    setattr(found, name, "i" * 100_000)
    log.write(found, 200, 0)

    assert len(getattr(found, name)) == LONGEST_TEXT


def test_one_of_so_many_is_written_and_every_failure(opened, path):
    log = opened(rate=10)
    for number in range(100):
        log.write(entry(id=str(number)), 404 if number == 50 else 200, 0)
    log.write(AccessLogEntry("grpc", "", "/x"), 3, 0)
    log.close()

    assert [line["status"] for line in lines(path)].count(200) == 9
    assert [line["status"] for line in lines(path)].count(404) == 1
    assert lines(path)[-1]["status"] == 3


def test_lines_go_on_in_a_new_file_when_the_old_one_was_moved(opened, path, tmp_path):
    log = opened()
    log.write(entry("before"), 200, 0)
    while not path.stat().st_size:
        pass

    path.rename(tmp_path / "access.log.1")
    log.write(entry("after"), 200, 0)
    log.close()

    assert [line["model"] for line in lines(tmp_path / "access.log.1")] == ["before"]
    assert [line["model"] for line in lines(path)] == ["after"]


def test_a_file_that_is_moved_while_it_is_written_gets_no_later_line(
    opened, path, tmp_path, monkeypatch
):
    log, write = opened(), os.write

    def write_and_move(file, piece):
        monkeypatch.setattr(os, "write", write)
        done = write(file, piece)
        path.rename(tmp_path / "access.log.1")
        log.write(entry("after"), 200, 0)
        return done

    monkeypatch.setattr(os, "write", write_and_move)
    log.write(entry("before"), 200, 0)
    while not (tmp_path / "access.log.1").exists():
        pass
    log.close()

    assert [line["model"] for line in lines(tmp_path / "access.log.1")] == ["before"]
    assert [line["model"] for line in lines(path)] == ["after"]


def test_a_file_is_reopened_on_request(opened, path):
    log = opened()
    path.unlink()

    log.reopen()

    while not path.exists():
        pass


def test_lines_are_appended_to_an_existing_file(opened, path):
    path.write_text('{"old":1}\n')
    log = opened()
    log.write(entry(), 200, 0)
    log.close()

    assert [len(line) > 1 for line in lines(path)] == [False, True]


def test_a_reader_that_does_not_read_loses_lines_and_delays_no_request(opened, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    log = opened(pipe, most=50)

    for number in range(5000):
        log.write(entry("m" * 500, id=str(number)), 200, 0)
    assert log.dropped > 0

    os.set_blocking(reader, True)
    found = []
    reading = threading.Thread(target=lambda: found.extend(_all_of(reader)))
    reading.start()
    log.close()
    reading.join()
    said = [json.loads(line) for line in b"".join(found).splitlines()]
    assert sum(line.get("dropped", 0) for line in said) == log.dropped
    assert len([line for line in said if "id" in line]) == 5000 - log.dropped


def test_lines_dropped_while_the_last_ones_are_written_are_reported_at_the_end(opened, path):
    log = opened()
    taken = log._lines

    def lines_while_three_are_dropped(count):
        log.dropped += 3
        return taken(count)

    log._lines = lines_while_three_are_dropped
    log.write(entry(), 200, 0)
    log.close()

    assert [line.get("dropped", 0) for line in lines(path)] == [0, 3]


def _all_of(reader):
    while piece := os.read(reader, 65536):
        yield piece
    os.close(reader)


def test_threads_of_other_processes_may_append_too(opened, path):
    one, other = opened(), opened()
    for number in range(500):
        one.write(entry(id=f"one {number}"), 200, 0)
        other.write(entry(id=f"other {number}"), 200, 0)
    one.close()
    other.close()

    assert len({line["id"] for line in lines(path)}) == 1000


def test_a_file_that_cannot_be_opened_is_refused(tmp_path):
    with pytest.raises(CoreError, match=r"--access-log=.* cannot be opened: No such file"):
        AccessLog(str(tmp_path / "nothing" / "log"))
    with pytest.raises(CoreError, match="is a folder; name a file"):
        AccessLog.of(SharedOptions(access_log=str(tmp_path)))


def test_there_is_no_access_log_by_default(path):
    assert AccessLog.of(SharedOptions()) is None


def test_the_end_comes_once(opened):
    log = opened()
    log.close()
    log.close()


def test_a_time_is_that_of_iso_8601():
    assert iso8601(1_700_000_000_123_456_789) == "2023-11-14T22:13:20.123456Z"
