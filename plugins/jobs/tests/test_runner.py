"""The Runner in the event loop of the test."""

import asyncio
import time

from core_jobs.job import BATCH, Submission
from core_jobs.running.changes import Changes
from core_jobs.running.reading import JobReader
from core_jobs.running.runner import Runner
from core_jobs.store import rows, submitting
from core_jobs.store.database import Database
from core_jobs.store.disk import Disk
from core_jobs.store.submitting import CallerLimits

from .conftest import request


async def test_a_cancellation_in_the_turn_of_the_claim_is_kept(inner, tmp_path):
    disk = Disk(Database(tmp_path, 100 << 20))
    runner = Runner(inner.server, disk, "owner", JobReader(inner.server), Changes())
    wanted = Submission("", "m", -1, BATCH, [request(1)], b"", 60.0)
    job, _ = await disk.run(submitting.submit, wanted, CallerLimits(9, 0))

    async def cancel():
        runner.cancel((await disk.run(submitting.cancel, "", job.id)).key)

    runner.look()
    cancelling = asyncio.ensure_future(cancel())
    await asyncio.sleep(0)
    time.sleep(0.05)  # the disk does both, and the loop learns of them in one turn
    await cancelling
    async with asyncio.timeout(5):
        while not (found := await disk.run(rows.find, "", job.id)).has_ended:
            await asyncio.sleep(0.01)
    assert (found.state, found.started_s is None) == ("cancelled", False)
    await runner.close()
    await disk.close()
