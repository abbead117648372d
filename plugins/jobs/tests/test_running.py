"""How requests of jobs reach their models: priority, patience, bounds of results, metrics."""

import http.client
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from core_jobs.job import BATCH, Submission
from core_jobs.store import progress, submitting
from core_jobs.store.database import Database
from core_jobs.store.submitting import CallerLimits

import core

from .conftest import LINES, VECTOR, Client, batch, request


def test_a_server_without_a_folder_has_no_routes():
    with core.Server() as server:
        client = Client(server.serve(http_port=0)["http"])
        assert client.get("/v2/jobs").status == 404


def test_requests_have_the_lowest_priority_of_the_model(serve):
    client = serve()
    seen = []

    def look(x, requests):
        seen.extend(each.priority for each in requests)
        return {"y": x}

    levels = {"priority_levels": 5, "default_priority_level": 2}
    config = {"dynamic_batching": levels}
    client.server.bind(
        "look", look, **VECTOR, batching=True, max_batch_size=4, requests=True, config=config
    )
    body = request(1).replace(b'"shape": [1]', b'"shape": [1, 1]')
    id = client.submit("look", body[:-1] + b', "parameters": {"priority": 1}}')["id"]
    assert client.ended(id)["state"] == "done"
    assert seen == [5]


def test_forwarded_headers_reach_the_model_and_may_differ_in_a_repetition(serve):
    client = serve(http_header_forward_pattern="x-.*|content-type")
    seen = []

    def look(x, requests):
        seen.extend(dict(each.parameters) for each in requests)
        return {"y": x}

    client.server.bind("look", look, **VECTOR, requests=True)
    for headers in ({}, LINES):
        own = {**headers, "Idempotency-Key": f"key{len(headers)}"}
        id = client.submit("look", request(1), {**own, "X-Number": "1"})["id"]
        client.ended(id)
        again = client.call("POST", "/v2/models/look/jobs", request(1), {**own, "X-Number": "2"})
        assert (again.status, again.json["id"]) == (200, id)
    assert [{k.lower(): v for k, v in each.items()}["x-number"] for each in seen] == ["1", "1"]


def away(client):
    """Submit a job for `double`, which is unloaded before the job begins; return its id."""
    first = client.submit("gate", request(0))["id"]
    client.until(first, lambda job: job["state"] == "running")
    id = client.submit("double", batch(1, 2), LINES)["id"]
    client.server.unbind("double")
    client.models.opened.set()
    client.until(id, lambda job: job["state"] != "queued")
    return id


def test_a_job_waits_for_its_model(serve):
    client = serve(jobs_running=1)
    id = away(client)
    time.sleep(0.2)
    assert client.state(id) == "running"
    client.models.bind(client.server)
    assert client.ended(id)["requests"]["succeeded"] == 2


def test_a_model_that_stays_away_fails_the_job(serve):
    client = serve(jobs_running=1, jobs_patience_secs=0.2)
    job = client.ended(away(client))
    assert job["state"] == "failed"
    assert job["error"].startswith("model 'double' has taken no request for 0.2 s")
    assert "'double'" in job["error"].partition(": ")[2]


def test_the_results_of_a_job_are_bounded(serve):
    client = serve(jobs_result_bytes=400, jobs_concurrency=1)
    id = client.submit("double", batch(*range(9)), LINES)["id"]
    job = client.ended(id)
    assert job["state"] == "failed"
    assert "exceed 400 bytes (--jobs-result-bytes)" in job["error"]
    kept = client.results(id).lines
    assert 0 < len(kept) == job["requests"]["succeeded"] < 9
    assert job["result_bytes"] <= 400


def test_a_full_folder_refuses_jobs_and_goes_on_when_there_is_room(serve):
    client = serve(jobs_max_bytes=1 << 20, jobs_result_bytes=1 << 20)
    values = list(range(40_000))
    first = client.submit("double", request(*values))["id"]
    client.ended(first)
    answer = client.call("POST", "/v2/models/double/jobs", request(*values, *values, *values))
    assert answer.status == 429
    assert "(--jobs-max-bytes); delete jobs" in answer.error
    assert client.call("DELETE", f"/v2/jobs/{first}").status == 204
    assert client.ended(client.submit("double", request(*values))["id"])["state"] == "done"


def test_results_for_which_the_folder_has_no_room_fail_the_job(serve):
    client = serve(jobs_max_bytes=1 << 20, jobs_result_bytes=1 << 20)
    client.server.bind("large", lambda x: {"y": x.repeat(300_000)}, **VECTOR)
    job = client.ended(client.submit("large", request(1))["id"])
    assert job["state"] == "failed"
    assert "--jobs-" in job["error"]
    assert client.ended(client.submit("double", request(1))["id"])["state"] == "done"


def test_calls_that_wait_end_when_the_server_stops(serve):
    client = serve()
    id = client.submit("gate", batch(1, 2), LINES)["id"]
    client.until(id, lambda job: job["state"] == "running")
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(client.get, f"/v2/jobs/{id}?wait=60")
        following = threads.submit(client.results, id, "?follow=true")
        time.sleep(0.1)
        begun = time.monotonic()
        stopping = threads.submit(client.server.stop)
        assert waiting.result(5).json["state"] == "running"
        with pytest.raises((http.client.IncompleteRead, OSError)):
            following.result(5)
        assert time.monotonic() - begun < 5
        client.models.opened.set()
        stopping.result(20)


def test_a_call_that_follows_a_job_ends_when_its_owner_is_gone(serve, tmp_path, monkeypatch):
    monkeypatch.setattr("core_jobs.jobs._LOOK_S", 0.3)
    client = serve()
    other = Database(tmp_path / "jobs", 10 << 30)
    wanted = Submission("", "double", -1, BATCH, [request(1)], b"", 60.0)
    job, _ = submitting.submit(other, wanted, CallerLimits(9, 0))
    assert progress.claim(other, "a process that has ended", 9).id == job.id
    submitting.cancel(other, "", job.id)
    other.close()
    assert client.results(job.id, "?follow=true").lines == []
    assert client.state(job.id) == "cancelled"


def test_metrics(serve):
    client = serve(allow_metrics=True)
    id = client.submit("double", b"\n".join([request(1), request(-1)]), LINES)["id"]
    client.ended(id)
    port = client.server.serve(metrics_port=0)["metrics"]
    end = time.monotonic() + 10
    while 'core_jobs{state="done"} 1' not in (text := Client(port).get("/metrics").body.decode()):
        assert time.monotonic() < end, text
        time.sleep(0.1)
    assert 'core_job_requests_total{result="succeeded"} 1' in text or (
        'core_job_requests{result="succeeded"} 1' in text
    )
    assert 'core_job_requests{result="failed"} 1' in text.replace("_total", "")
    assert "core_jobs_oldest_waiting_seconds 0" in text
