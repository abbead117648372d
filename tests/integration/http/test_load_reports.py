"""Load reports over HTTP: which responses have one, on both paths."""

import json

import pytest

WANTED = {"endpoint-load-metrics-format": "json"}
REPORT = "endpoint-load-metrics"
X = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [2], "data": [1, 2]}]}


@pytest.mark.parametrize("form", ["json", "text"])
async def test_a_response_has_the_report_that_its_request_asks_for(site, form):
    found = await site.infer("echo", X, {"Endpoint-Load-Metrics-Format": form})

    assert found.status == 200 and found.json["outputs"][0]["data"] == [1, 2]
    kind, _, text = found.headers[REPORT].partition(" ")
    assert kind == form.upper()
    if form == "json":
        assert json.loads(text)["named_metrics"]["requests_pending"] == 0
    else:
        assert "named_metrics.requests_pending=0" in text.split(", ")


async def test_a_stream_has_it_before_its_first_event(site):
    found = await site.ask("POST", "/v2/models/stream/generate_stream", {"x": [1.0]}, WANTED)

    assert found.headers["content-type"].startswith("text/event-stream")
    assert found.headers[REPORT].startswith("JSON {")


async def test_the_error_of_a_model_has_it_too(site):
    found = await site.infer("broken", X, WANTED)

    assert found.status == 500 and found.headers[REPORT].startswith("JSON {")


@pytest.mark.parametrize("headers", [{}, {"endpoint-load-metrics-format": "xml"}])
async def test_other_requests_get_none(site, headers):
    assert REPORT not in (await site.infer("echo", X, headers)).headers


async def test_a_connection_reports_only_where_a_request_asks(site):
    connection = await site.connect()
    path = "/v2/models/echo/infer"

    found = [await connection.ask("POST", path, X, each) for each in ({}, WANTED, {})]

    assert [REPORT in each.headers for each in found] == [False, True, False]


async def test_what_is_no_request_for_a_model_has_none(site):
    for method, path in (("GET", "/v2/health/ready"), ("POST", "/v2/models/absent/infer")):
        found = await site.ask(method, path, X if method == "POST" else None, WANTED)
        assert REPORT not in found.headers, path
