"""ResultLines: the results of a batch while its job changes."""

from types import SimpleNamespace

import pytest
from core_jobs.http import results
from core_jobs.http.results import ResultLines
from core_jobs.job import BATCH, DONE, Result, Submission
from core_jobs.running.changes import Changes
from core_jobs.store import progress, submitting
from core_jobs.store.database import Database
from core_jobs.store.disk import Disk
from core_jobs.store.submitting import CallerLimits


@pytest.fixture
async def jobs(tmp_path):
    disk = Disk(Database(tmp_path, 1 << 20))
    yield SimpleNamespace(disk=disk, changes=Changes())
    await disk.close()


@pytest.mark.parametrize("follows", [False, True])
async def test_a_download_whose_job_is_deleted_meanwhile_has_no_end(jobs, monkeypatch, follows):
    monkeypatch.setattr(results, "_PART_BYTES", 1)
    run = jobs.disk.run
    wanted = Submission("", "m", -1, BATCH, [b"0", b"1"], b"", 60.0)
    job, _ = await run(submitting.submit, wanted, CallerLimits(9, 0))
    await run(progress.claim, "p", 1)
    await run(progress.record, "p", job.key, [Result(0, 200, {}, b"{}"), Result(1, 200, {}, b"{}")])
    job = await run(progress.finish, "p", job.key, DONE)
    found = ResultLines(jobs, job, range(9), follows=follows)
    assert len([part async for part in found]) == 2

    parts = aiter(ResultLines(jobs, job, range(9), follows=follows))
    assert await anext(parts) == b'{"index":0,"status":200,"response":{}}\n'
    await run(submitting.delete, "", job.id)
    with pytest.raises(ConnectionError, match="the job was deleted"):
        await anext(parts)
