"""When the two reasons hold, on their own."""

import asyncio
import os

import pytest
from core_readiness import core_server_starting, core_workers_starting
from core_readiness.drain import DrainFile, start_ns
from core_readiness.overload import Limit, Overload

from core.errors import CoreError
from core.options import Options


def reason(found):
    return asyncio.run(found.reason())


def test_a_file_counts_while_it_exists(tmp_path):
    file = tmp_path / "drain"
    found = DrainFile(str(file), since_ns=0)

    assert reason(found) == ""
    file.touch()
    assert reason(found) == "the server drains: the file of --drain-file exists"
    file.unlink()
    assert reason(found) == ""


def test_a_file_of_an_earlier_server_does_not_count_until_it_is_touched(tmp_path):
    file = tmp_path / "drain"
    file.touch()
    os.utime(file, ns=(1_000, 1_000))
    found = DrainFile(str(file), since_ns=2_000)

    assert reason(found) == ""
    os.utime(file, ns=(3_000, 3_000))
    assert reason(found) != ""


def test_a_missing_folder_is_no_reason(tmp_path):
    assert reason(DrainFile(str(tmp_path / "no" / "drain"), since_ns=0)) == ""


def test_a_worker_began_when_the_process_did_that_starts_workers(monkeypatch):
    monkeypatch.setenv("CORE_READINESS_START", f"{os.getppid()} 17")
    assert start_ns() == 17


@pytest.mark.parametrize("before", ["", "0 17"])
def test_another_server_begins_now(monkeypatch, before):
    monkeypatch.setenv("CORE_READINESS_START", before)
    assert start_ns() > 1_000


def test_workers_get_the_start_only_for_a_drain_file(monkeypatch):
    monkeypatch.delenv("CORE_READINESS_START", raising=False)
    core_workers_starting(Options(added={"drain_file": ""}))
    assert "CORE_READINESS_START" not in os.environ
    core_workers_starting(Options(added={"drain_file": "drain"}))
    assert os.environ["CORE_READINESS_START"].startswith(f"{os.getpid()} ")
    monkeypatch.delenv("CORE_READINESS_START")


def test_overload_begins_above_the_limit_and_ends_below_half_of_it():
    limit = Limit(0.5)

    found = [limit.excess_s(each) for each in (0.4, 0.5, 0.6, 0.4, 0.26, 0.25, 0.4, 0.6)]

    assert found == [0, 0, 0.6, 0.4, 0.26, 0, 0, 0.6]


class Looks:
    """Excesses, one for each look, and a clock that stands still unless it is moved."""

    def __init__(self, *excesses_s):
        self.now_s = 0.0
        self.left = iter(excesses_s)

    def clock_s(self):
        return self.now_s

    async def excess_s(self):
        return next(self.left)


def test_an_overloaded_server_says_how_long_a_request_would_wait():
    looks = Looks(0.6, 0.0)
    found = Overload(0.5, looks.excess_s, looks.clock_s)

    assert reason(found) == (
        "the server is overloaded: a new request would wait 0.6 s; it is ready again below 0.25 s "
        "(--overload-wait-secs=0.5)"
    )
    looks.now_s = 0.2
    assert reason(found) == ""


def test_many_questions_look_once():
    looks = Looks(9.0)
    found = Overload(0.5, looks.excess_s, looks.clock_s)

    assert all(reason(found) for _ in range(20))


@pytest.mark.parametrize("value", [-1.0, float("nan")])
def test_a_wrong_wait_is_refused_with_its_option(value):
    class Server:
        class options:
            added = {"overload_wait_secs": value}

    with pytest.raises(CoreError, match=r"--overload-wait-secs is (-1|nan), it must be 0 or more"):
        core_server_starting(Server)
