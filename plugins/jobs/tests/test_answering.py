"""Answering: which requests are sent again, and for how long."""

import asyncio
from types import SimpleNamespace

import numpy as np
import pytest
from core_jobs.job import BATCH, Item, Submission
from core_jobs.running import allowance, answering
from core_jobs.running.answering import Answering, ModelAway
from core_jobs.running.reading import JobReader
from core_jobs.store import submitting
from core_jobs.store.database import Database
from core_jobs.store.submitting import CallerLimits

import core
from core.errors import Exhausted, unavailable
from core.request import InferenceRequest
from core.tensor import Tensor

from .conftest import LINES, VECTOR, batch, request


@pytest.fixture
def clock(monkeypatch):
    """The clock of the patience; pauses take no time."""
    found = SimpleNamespace(now_s=1000.0)
    for module in (allowance, answering):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: found.now_s))
    monkeypatch.setattr(answering, "_LONGEST_PAUSE_S", 0.001)
    monkeypatch.setattr(answering, "_FIRST_PAUSE_S", 0.001)
    return found


def test_a_model_that_refuses_what_it_has_taken_executes_it_five_times(serve, clock):
    client = serve(jobs_patience_secs=0.0)
    seen = []

    def busy(x):
        seen.append(float(x[0]))
        if x[0] == 1:
            raise unavailable("no place left inside")
        return {"y": x}

    client.server.bind("busy", busy, **VECTOR)
    id = client.submit("busy", batch(1, 2), LINES)["id"]
    assert client.ended(id)["state"] == "done"
    refused, answered = client.results(id).lines
    assert (refused["status"], answered["status"]) == (503, 200)
    assert "no place left inside" in refused["response"]["error"]
    assert seen.count(1) == 5


def test_a_job_waits_for_a_model_whose_instances_are_gone(serve):
    client = serve(jobs_patience_secs=0.3, jobs_concurrency=1)

    def gone(x):
        raise core.Fatal("its device is lost")

    client.server.bind("gone", gone, **VECTOR)
    job = client.ended(client.submit("gone", batch(1, 2), LINES)["id"])
    assert job["requests"]["failed"] == 1  # by which the instance has gone
    assert job["error"].startswith("model 'gone' has taken no request for 0.3 s")
    assert "no instance of the model is left: its device is lost" in job["error"]


async def test_the_patience_begins_anew_when_the_model_takes_a_request(inner, tmp_path, clock):
    wanted = Submission("", "m", -1, BATCH, [request(0), request(1)], b"", 60.0)
    db = Database(tmp_path, 1 << 20)
    job, _ = submitting.submit(db, wanted, CallerLimits(9, 0))
    db.close()
    retried = asyncio.Event()
    reader = JobReader(inner.server)
    found = Answering(inner.server, reader, job, 10.0, retried.set, lambda: False)

    async def refused():
        retried.clear()
        await asyncio.wait_for(retried.wait(), 5)

    x = Tensor.of("x", np.zeros(1, np.float32))
    direct = [inner.server.models.infer(InferenceRequest("m", {"x": x})) for _ in range(2)]
    first = asyncio.ensure_future(found.answer(Item(0, request(0))))
    await refused()  # one request is at the model, and one fills its queue
    clock.now_s += 6
    direct[1].cancel()
    async with asyncio.timeout(5):
        while found._refused_s is not None:
            await asyncio.sleep(0.001)
    second = asyncio.ensure_future(found.answer(Item(1, request(1))))
    await refused()
    clock.now_s += 6
    await refused()
    assert not second.done()
    clock.now_s += 6
    with pytest.raises(ModelAway, match="taken no request for 10 s"):
        await second
    inner.gate.set()
    assert (await first).status == 200


@pytest.mark.parametrize(("wait_s", "tries"), [(1, 11), (2, 6), (600, 6)])
async def test_a_wait_for_a_limit_is_two_seconds_of_patience(inner, tmp_path, clock, wait_s, tries):
    wanted = Submission("", "gone", -1, BATCH, [request(0)], b"", 60.0)
    db = Database(tmp_path, 1 << 20)
    job, _ = submitting.submit(db, wanted, CallerLimits(9, 0))
    db.close()
    asked = []

    class Limited:
        usage = None

        def enter(self, spare):
            asked.append(spare)
            if len(asked) % 2:
                clock.now_s += wait_s
                raise Exhausted("a limit", 0.01)
            return 0

        def leave(self, slot):
            pass

    limited = Limited()
    found = Answering(inner.server, JobReader(inner.server), job, 10.0, lambda: None, lambda: False)
    found._allowance._policy = SimpleNamespace(allowance_of=lambda caller: limited)
    with pytest.raises(ModelAway, match="taken no request for 10 s"):
        await found.answer(Item(0, request(0)))

    assert len(asked) == 2 * tries
