"""The routes of jobs, on a server in this process."""

import gzip
import json
import time

import numpy as np

from .conftest import LINES, batch, request


def test_a_request_becomes_a_job_and_its_result_that_of_the_model(client):
    accepted = client.call("POST", "/v2/models/double/jobs", request(1, 2, id="a"))
    assert accepted.status == 202
    id = accepted.json["id"]
    assert accepted.headers["Location"] == f"/v2/jobs/{id}"
    assert accepted.json["requests"] == {"total": 1, "succeeded": 0, "failed": 0}

    job = client.ended(id)
    result = client.results(id)
    direct = client.call("POST", "/v2/models/double/infer", request(1, 2, id="a"))
    assert job["state"] == "done"
    assert job["progress"] == 1
    assert job["requests"] == {"total": 1, "succeeded": 1, "failed": 0}
    assert job["created"] <= job["started"] <= job["ended"] < job["expires"]
    assert (result.status, result.body) == (200, direct.body)
    assert result.headers["Content-Type"] == "application/json"


def test_a_request_with_binary_tensors(client):
    raw = np.array([1, 2, 3], np.float32).tobytes()
    tensor = {"name": "x", "datatype": "FP32", "shape": [3], "parameters": {"binary_data_size": 12}}
    text = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
    headers = {"Inference-Header-Content-Length": str(len(text))}

    id = client.submit("double", text + raw, headers)["id"]
    client.ended(id)
    result = client.results(id)
    size = int(result.headers["Inference-Header-Content-Length"])
    assert np.frombuffer(result.body[size:], np.float32).tolist() == [2, 4, 6]


def test_a_compressed_request(client):
    id = client.submit("double", gzip.compress(request(3)), {"Content-Encoding": "gzip"})["id"]
    client.ended(id)
    assert client.results(id).json["outputs"][0]["data"] == [6]


def test_a_batch_has_its_results_in_order(client):
    id = client.submit("double", batch(*range(50)) + b"\n\n", LINES)["id"]
    job = client.ended(id)
    assert job["requests"] == {"total": 50, "succeeded": 50, "failed": 0}
    found = client.results(id)
    assert found.headers["Content-Type"] == "application/x-ndjson"
    assert [line["index"] for line in found.lines] == list(range(50))
    values = [line["response"]["outputs"][0]["data"][0] for line in found.lines]
    assert values == [2.0 * each for each in range(50)]
    rest = client.results(id, "?first=48").lines
    assert [line["index"] for line in rest] == [48, 49]


def test_an_error_is_the_result_of_its_request(client):
    wrong = request(1).replace(b'"x"', b'"z"')
    id = client.submit("double", b"\n".join([request(1), request(-1), wrong]), LINES)["id"]
    job = client.ended(id)
    assert (job["state"], job["requests"]["failed"]) == ("done", 2)
    first, second, third = client.results(id).lines
    assert (first["status"], second["status"], third["status"]) == (200, 500, 400)
    assert "below zero" in second["response"]["error"]
    assert "'z'" in third["response"]["error"]


def test_a_job_without_any_success_has_failed(client):
    id = client.submit("double", request(-1))["id"]
    job = client.ended(id)
    assert job["state"] == "failed"
    assert "below zero" in job["error"]
    result = client.results(id)
    assert (result.status, result.error) == (500, job["error"])


def test_a_model_with_many_responses(client):
    tensor = {"name": "text", "datatype": "BYTES", "shape": [1], "data": ["one two three"]}
    id = client.submit("words", json.dumps({"inputs": [tensor]}).encode(), LINES)["id"]
    assert client.ended(id)["state"] == "done"
    responses = client.results(id).lines[0]["response"]["responses"]
    assert [each["outputs"][0]["data"] for each in responses] == [["one"], ["two"], ["three"]]


def test_wrong_submissions_are_refused_at_once(client):
    def refused(body, headers=None, model="double"):
        answer = client.call("POST", f"/v2/models/{model}/jobs", body, headers)
        return answer.status, answer.error

    status, text = refused(request(1), model="absent")
    assert (status, "'absent' is not found" in text) == (404, True)
    assert refused(b"{")[0] == 400
    assert refused(b"") == (
        400,
        "the body is empty; expected a request, or a line of JSON for each request",
    )
    assert "needs the header Content-Type: application/jsonl" in refused(batch(1, 2))[1]
    assert refused(request(1) + b"\n{\n", LINES)[1].startswith("line 2 of the batch: ")
    assert refused(b"\n[]\n", LINES)[1].startswith("line 2 of the batch is no request")
    assert refused(b"\n \n", LINES) == (400, "the body has no line with a request")
    assert refused(request(1), {"Job-Deadline-Secs": "soon"}) == (
        400,
        "Job-Deadline-Secs is 'soon'; expected a number from 0.001 to 2.592e+06",
    )
    assert refused(request(1), {"Job-Keep-Secs": "86401"})[0] == 400
    assert refused(request(1), {"Idempotency-Key": "k" * 256})[0] == 400
    assert refused(request(1), {"Content-Encoding": "br"})[0] == 501
    shared = {"shared_memory_region": "r", "shared_memory_byte_size": 4}
    tensor = {"name": "x", "datatype": "FP32", "shape": [1], "parameters": shared}
    assert refused(json.dumps({"inputs": [tensor]}).encode())[0] == 404


def test_wrong_questions_are_refused(client):
    id = client.submit("double", request(1))["id"]
    assert client.get("/v2/jobs/nothing").status == 404
    assert "there is no job 'nothing'" in client.results("nothing").error
    for query in ("?wait=61", "?wait=x", "?wait=1&wait=2", "?wiat=1"):
        answer = client.get(f"/v2/jobs/{id}{query}")
        assert answer.status == 400, query
    assert "expected wait" in client.get(f"/v2/jobs/{id}?wiat=1").error
    assert client.results(id, "?follow=yes").status == 400
    assert client.get("/v2/jobs?limit=0").status == 400
    assert client.get("/v2/jobs?state=old").status == 400
    assert client.get("/v2/jobs?after=nothing").status == 404
    assert client.call("PUT", f"/v2/jobs/{id}").status == 405


def test_a_repeated_submission_returns_the_same_job(client):
    headers = {"Idempotency-Key": "one"}
    first = client.submit("double", request(1), headers)
    again = client.call("POST", "/v2/models/double/jobs", request(1), headers)
    assert (again.status, again.json["id"]) == (200, first["id"])
    other = client.call("POST", "/v2/models/double/jobs", request(2), headers)
    assert (other.status, first["id"] in other.error) == (400, True)


def test_the_list_has_pages(serve):
    client = serve()
    ids = [client.submit("double", request(each))["id"] for each in range(5)]
    for id in ids:
        client.ended(id)
    page = client.get("/v2/jobs?limit=2").json
    assert [job["id"] for job in page["jobs"]] == [ids[4], ids[3]]
    page = client.get(f"/v2/jobs?limit=3&after={page['after']}&state=done").json
    assert [job["id"] for job in page["jobs"]] == [ids[2], ids[1], ids[0]]
    assert page["after"] is None
    assert client.get("/v2/jobs?state=queued").json == {"jobs": [], "after": None}


def test_jobs_and_their_requests_are_bounded(serve):
    client = serve(jobs_running=1, jobs_concurrency=3)
    first = client.submit("gate", batch(*range(6)), LINES)["id"]
    second = client.submit("gate", batch(10), LINES)["id"]
    client.until(first, lambda job: job["state"] == "running")
    time.sleep(0.2)
    assert sorted(client.models.asked) == [0, 1, 2]
    assert client.state(second) == "queued"
    assert client.call("DELETE", f"/v2/jobs/{first}").status == 409
    answer = client.results(first)
    assert (answer.status, "0 of 6 requests have a result" in answer.error) == (409, True)
    client.models.opened.set()
    assert client.ended(first)["state"] == client.ended(second)["state"] == "done"


def test_results_can_be_followed(serve):
    client = serve(jobs_concurrency=2)
    id = client.submit("gate", batch(*range(4)), LINES)["id"]
    client.until(id, lambda job: job["state"] == "running")
    client.models.opened.set()
    lines = client.results(id, "?follow=true").lines
    assert [line["index"] for line in lines] == [0, 1, 2, 3]
    assert client.state(id) == "done"


def test_cancel_a_job_that_runs_and_one_that_waits(serve):
    client = serve(jobs_running=1, jobs_concurrency=2)
    running = client.submit("gate", batch(*range(9)), LINES)["id"]
    waiting = client.submit("gate", batch(1), LINES)["id"]
    client.until(running, lambda job: job["state"] == "running")

    assert client.call("POST", f"/v2/jobs/{waiting}/cancel").json["state"] == "cancelled"
    client.models.opened.set()
    client.models.opened.clear()
    found = client.call("POST", f"/v2/jobs/{running}/cancel").json
    assert found["state"] == "cancelled"
    assert client.call("POST", f"/v2/jobs/{running}/cancel").json["state"] == "cancelled"
    lines = client.results(running).lines  # what was there stays
    assert len(lines) == found["requests"]["succeeded"] < 9
    assert client.call("DELETE", f"/v2/jobs/{running}").status == 204
    assert client.get(f"/v2/jobs/{running}").status == 404


def test_a_job_ends_at_its_deadline(serve):
    client = serve()
    id = client.submit("gate", batch(1, 2), {**LINES, "Job-Deadline-Secs": "0.3"})["id"]
    job = client.ended(id)
    assert job["state"] == "failed"
    assert job["deadline"] <= job["ended"]


def test_metrics_and_the_description_of_the_routes(client):
    id = client.submit("double", request(1))["id"]
    client.ended(id)
    paths = client.get("/openapi.json").json["paths"]
    assert paths["/v2/jobs/{job}"]["delete"]["tags"] == ["jobs"]
    assert "post" in paths["/v2/models/{model}/versions/{version}/jobs"]
