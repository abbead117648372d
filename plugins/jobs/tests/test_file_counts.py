"""FileCounts: calls for the files of a job do not keep the disk busy."""

import asyncio
import dataclasses
from types import SimpleNamespace

import pytest
from core_jobs import file_counts
from core_jobs.file_counts import FileCounts
from core_jobs.job import DONE, QUEUED, RUNNING, Job


@pytest.fixture
def clock(monkeypatch):
    found = SimpleNamespace(now_s=100.0)
    monkeypatch.setattr(file_counts, "time", SimpleNamespace(monotonic=lambda: found.now_s))
    return found


class CountingDisk:
    """Returns the number of the reading; each takes `took_s`."""

    def __init__(self, clock):
        self.clock, self.took_s, self.readings = clock, 0.0, 0

    async def run(self, function, key):
        await asyncio.sleep(0)
        self.readings += 1
        self.clock.now_s += self.took_s
        return [self.readings]


def job_of(state, succeeded=0, key=1):
    values = dict.fromkeys((each.name for each in dataclasses.fields(Job)), 0)
    return Job(**{**values, "key": key, "state": state, "succeeded": succeeded})


async def test_counts_of_a_job_that_runs_are_at_most_a_second_old(clock):
    counts = FileCounts(CountingDisk(clock))

    assert await counts.files(job_of(RUNNING, 1)) == [1]
    assert await counts.files(job_of(RUNNING, 2)) == [1]
    clock.now_s += 1.1
    assert await counts.files(job_of(RUNNING, 2)) == [2]


async def test_counts_that_take_long_are_kept_longer(clock):
    disk = CountingDisk(clock)
    disk.took_s = 3.0
    counts = FileCounts(disk)

    assert await counts.files(job_of(RUNNING, 1)) == [1]
    clock.now_s += 59
    assert await counts.files(job_of(RUNNING, 2)) == [1]
    clock.now_s += 2
    assert await counts.files(job_of(RUNNING, 2)) == [2]


async def test_counts_of_an_ended_job_are_exact_and_read_once(clock):
    counts = FileCounts(CountingDisk(clock))

    assert await counts.files(job_of(RUNNING, 8)) == [1]
    assert await counts.files(job_of(DONE, 9)) == [2]
    clock.now_s += 1000
    assert await counts.files(job_of(DONE, 9)) == [2]


async def test_calls_at_the_same_time_read_once(clock):
    disk = CountingDisk(clock)
    counts = FileCounts(disk)

    found = await asyncio.gather(*(counts.files(job_of(QUEUED)) for _ in range(5)))

    assert (found, disk.readings) == ([[1]] * 5, 1)


async def test_the_counts_of_few_jobs_are_kept(clock):
    disk = CountingDisk(clock)
    counts = FileCounts(disk)

    for _ in range(2):
        for key in range(file_counts._MOST_KEPT + 1):
            await counts.files(job_of(DONE, key=key))

    assert disk.readings == 2 * (file_counts._MOST_KEPT + 1)
    assert len(counts._kept) == file_counts._MOST_KEPT
