"""When the two reasons hold, on their own."""

import asyncio
import os

import pytest
from core_readiness import core_server_starting
from core_readiness.drain import DrainFile
from core_readiness.overload import Overload

from core.errors import CoreError


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
    assert reason(DrainFile(str(tmp_path / "no" / "drain"))) == ""


class Waits:
    """Waits of a new request, one for each look; time passes by a second for each question."""

    def __init__(self, *waits_s):
        self.now_s = 0.0
        self.looks = iter(waits_s)

    def clock_s(self):
        self.now_s += 1.0
        return self.now_s

    async def wait_s(self):
        return next(self.looks)


def test_overload_begins_above_the_limit_and_ends_below_half_of_it():
    waits = Waits(0.4, 0.5, 0.6, 0.4, 0.26, 0.25, 0.4, 0.6)
    found = Overload(0.5, waits.wait_s, waits.clock_s)

    texts = [reason(found) for _ in range(8)]

    assert [bool(each) for each in texts] == [False, False, True, True, True, False, False, True]
    assert texts[2] == (
        "the server is overloaded: a new request would wait 0.6 s; it is ready again below 0.25 s "
        "(--overload-wait-secs=0.5)"
    )


def test_many_questions_look_once():
    waits = Waits(9.0)
    found = Overload(0.5, waits.wait_s, lambda: 7.0)

    assert all(reason(found) for _ in range(20))


@pytest.mark.parametrize("value", [-1.0, float("nan")])
def test_a_wrong_wait_is_refused_with_its_option(value):
    class Server:
        class options:
            added = {"overload_wait_secs": value}

    with pytest.raises(CoreError, match=r"--overload-wait-secs is (-1|nan), it must be 0 or more"):
        core_server_starting(Server)
