"""The requests of a job count in the limits of its caller: they wait where others are refused."""

import asyncio
import time
from types import SimpleNamespace

import numpy as np
import pytest
from core_jobs.http import services
from core_jobs.running import allowance
from core_jobs.running.allowance import JobAllowance

from frontends.shared.access.limits import Allowances, Limits

from .conftest import LINES, batch, request


def test_a_job_is_as_fast_as_the_rate_of_its_caller(serve):
    client = serve(limit_rate=20.0, limit_burst=2)
    begun = time.monotonic()
    id = client.submit("double", batch(*range(6)), LINES)["id"]

    job = client.ended(id)

    assert job["requests"] == {"total": 6, "succeeded": 6, "failed": 0}
    assert time.monotonic() - begun > 0.25  # six requests, after the two that a full bucket has


def test_a_job_has_no_more_requests_at_once_than_its_caller(serve):
    client = serve(limit_concurrency=1, jobs_concurrency=4)
    id = client.submit("gate", batch(1, 2, 3), LINES)["id"]
    end = time.monotonic() + 20
    while not client.models.asked:
        assert time.monotonic() < end
        time.sleep(0.01)

    refused = client.call("POST", "/v2/models/double/infer", request(1))
    time.sleep(0.1)

    assert (refused.status, client.models.asked) == (429, [1.0])
    assert refused.error.startswith("address '127.0.0.1' has 1 requests in flight")
    client.models.opened.set()
    while (found := client.get(f"/v2/jobs/{id}")).status == 429 or found.json["state"] != "done":
        assert time.monotonic() < end
        time.sleep(0.05)
    assert sorted(client.models.asked) == [1.0, 2.0, 3.0]


def test_a_caller_may_always_ask_for_its_job_and_cancel_it(serve):
    client = serve(limit_concurrency=2, limit_rate=1000.0, jobs_concurrency=4)
    id = client.submit("gate", batch(*range(100)), LINES)["id"]
    client.until(id, lambda job: client.models.asked)
    time.sleep(0.1)

    assert client.get(f"/v2/jobs/{id}").status == 200
    assert client.models.asked == [0.0]
    assert client.call("POST", f"/v2/jobs/{id}/cancel").status in (200, 202)
    client.models.opened.set()
    assert client.until(id, lambda job: job["state"] == "cancelled")


async def test_requests_begin_in_their_order_as_soon_as_one_before_has_left(inner, monkeypatch):
    monkeypatch.setattr(allowance, "_LEAST_PAUSE_S", 60.0)
    monkeypatch.setattr(allowance, "_LONGEST_PAUSE_S", 60.0)
    limited = Allowances(time.monotonic).of("ann", Limits(concurrent=2), known=True)
    found = JobAllowance(inner.server, SimpleNamespace(id="1", caller="ann"), lambda: False)
    found._policy = SimpleNamespace(allowance_of=lambda caller: limited)
    begun, slots = [], asyncio.Semaphore(4)

    async def one(index):
        async with found.one():
            begun.append(index)
            await asyncio.sleep(0)
        slots.release()

    async with asyncio.timeout(30):
        tasks = []
        for index in range(20):  # as JobRun does
            await slots.acquire()
            tasks.append(asyncio.ensure_future(one(index)))
        await asyncio.gather(*tasks)

    assert begun == list(range(20))


async def test_two_jobs_of_a_caller_take_turns_at_its_limit(inner, monkeypatch):
    monkeypatch.setattr(allowance, "_LEAST_PAUSE_S", 60.0)
    monkeypatch.setattr(allowance, "_LONGEST_PAUSE_S", 60.0)
    limited = Allowances(time.monotonic).of("ann", Limits(concurrent=2), known=True)
    jobs = {}
    for id in "ab":
        job = SimpleNamespace(id=id, caller="ann")
        jobs[id] = JobAllowance(inner.server, job, lambda: False)
        jobs[id]._policy = SimpleNamespace(allowance_of=lambda caller: limited)
    begun = []

    async def one(id, index):
        async with jobs[id].one():
            begun.append((id, index))
            await asyncio.sleep(0)

    async with asyncio.timeout(30):
        await asyncio.gather(*(one(id, index) for index in range(5) for id in "ab"))

    assert begun == [(id, index) for index in range(5) for id in "ab"]


def test_the_jobs_of_a_caller_end_together(serve):
    client = serve(limit_concurrency=2, jobs_concurrency=2)
    firsts = (0, 100, 200)
    ids = [client.submit("gate", batch(*range(n, n + 20)), LINES)["id"] for n in firsts]
    for id in ids:
        client.until(id, lambda job: job["state"] == "running")
    client.models.opened.set()
    for id in ids:
        client.ended(id)

    asked = client.models.asked
    assert len(asked) == 60
    assert all(asked.index(n + 19.0) > 40 for n in firsts), asked


async def test_a_request_that_waits_for_its_turn_can_be_cancelled(inner):
    limited = Allowances(time.monotonic).of("ann", Limits(concurrent=2), known=True)
    found = JobAllowance(inner.server, SimpleNamespace(id="1", caller="ann"), lambda: False)
    found._policy = SimpleNamespace(allowance_of=lambda caller: limited)

    async def one():
        async with found.one():
            await asyncio.sleep(60)

    tasks = [asyncio.ensure_future(one()) for _ in range(3)]
    await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    ended = await asyncio.gather(*tasks, return_exceptions=True)

    assert [type(each) for each in ended] == [asyncio.CancelledError] * 3
    async with asyncio.timeout(30), found.one():
        pass


@pytest.mark.parametrize("most", [1, 2])
def test_a_call_that_waits_for_a_job_takes_no_place_of_it(serve, most):
    client = serve(limit_concurrency=most)
    id = client.submit("double", batch(*range(9)), LINES)["id"]
    end = time.monotonic() + 20
    while (waited := client.get(f"/v2/jobs/{id}?wait=30")).status == 429:
        assert time.monotonic() < end
    assert waited.json["state"] == "done"

    id = client.submit("double", batch(*range(9)), LINES)["id"]
    while (followed := client.results(id, "?follow=true")).status == 429:
        assert time.monotonic() < end
    assert len(followed.lines) == 9


def test_a_download_of_an_ended_job_keeps_its_place(serve, monkeypatch):
    client = serve()
    waits, real = [], services._waits
    monkeypatch.setattr(services, "_waits", lambda call: (waits.append(call.path), real(call)))
    id = client.submit("gate", batch(1, 2), LINES)["id"]
    client.until(id, lambda job: client.models.asked)
    assert waits == []
    client.models.opened.set()
    client.ended(id)
    waits.clear()

    assert len(client.results(id, "?follow=true").lines) == 2
    assert waits == []


@pytest.mark.parametrize("ends", ["cancel", "stop"])
def test_a_job_waits_until_its_caller_has_tokens(serve, ends):
    client = serve(limit_tokens=60, jobs_concurrency=1)
    asked = []

    def talks(x):
        asked.append(float(x[0]))
        return {"y": x, "num_output_tokens": np.array([1000], np.int32)}

    client.server.bind(
        "talks",
        talks,
        inputs={"x": ("FP32", [-1])},
        outputs={"y": ("FP32", [-1]), "num_output_tokens": ("INT32", [1])},
    )
    id = client.submit("talks", batch(1, 2), LINES)["id"]
    client.until(id, lambda job: job["requests"]["succeeded"] == 1)
    time.sleep(0.1)

    assert (client.state(id), asked) == ("running", [1.0])
    if ends == "cancel":
        client.call("POST", f"/v2/jobs/{id}/cancel")
        assert client.ended(id)["state"] == "cancelled"
    # else the end of the test stops the server, which does not wait for the tokens


async def test_without_limits_nothing_is_counted(inner):
    found = JobAllowance(inner.server, SimpleNamespace(id="1", caller=""), lambda: False)

    async with found.one() as meter:
        assert meter is None
    assert found.excused_s == 0.0
