"""Spans of HTTP requests, received by a collector."""

import pytest

TRACE, SPAN = "0af7651916cd43dd8448eb211c12666c", "b7ad6b7169203331"
CLIENT = {"traceparent": f"00-{TRACE}-{SPAN}-00", "TraceState": "a=b,c=d"}
SENT = ["HTTP_SEND_START", "HTTP_SEND_END"]


def only_with_a_context(config):
    return {**config, "": [*config[""], ("rate", "0")]}


async def test_a_request_has_a_span_with_its_times(open_with, document, collector):
    async with open_with(trace_config=collector.config) as site:
        reply = await site.infer("echo", document(1, 2, id="mine"))

    assert reply.json["outputs"][0]["data"] == [1, 2]
    root, model, compute = collector.named("InferRequest", "echo", "compute")
    assert collector.tree() == [("", "InferRequest"), ("InferRequest", "echo"), ("echo", "compute")]
    assert root.events == ["HTTP_RECV_START", "HTTP_RECV_END", "INFER_RESPONSE_COMPLETE", *SENT]
    assert model.events == ["REQUEST_START", "QUEUE_START", "REQUEST_END"]
    assert compute.events == [
        "COMPUTE_START",
        "COMPUTE_INPUT_END",
        "COMPUTE_OUTPUT_START",
        "COMPUTE_END",
    ]
    assert model.attributes == {
        "triton.model_name": "echo",
        "triton.model_version": 1,
        "triton.trace_id": 1,
        "triton.trace_parent_id": 0,
        "triton.request_id": "mine",
        "core.instance": "echo_0",
    }
    assert (root.kind, root.scope) == (2, "triton-server")
    assert root.resource["service.name"] == "triton-inference-server"


async def test_the_span_of_the_client_is_the_parent(open_with, document, collector):
    async with open_with(trace_config=only_with_a_context(collector.config)) as site:
        await site.infer("echo", document(1))
        await site.infer("echo", document(1), headers=CLIENT)

    (root,) = collector.named("InferRequest")
    assert (root.trace, root.parent, root.state) == (TRACE, SPAN, "a=b,c=d")
    assert collector.count("InferRequest") == 1


async def test_generate_has_a_span_too(open_with, collector):
    async with open_with(trace_config=only_with_a_context(collector.config)) as site:
        for method in ("generate", "generate_stream"):
            path = f"/v2/models/echo/{method}"
            assert (await site.ask("POST", path, {"x": [1]}, CLIENT)).status == 200

    assert collector.count("InferRequest") == 2
    for root in collector.spans:
        if root.name == "InferRequest":
            assert root.parent == SPAN
            assert root.events[:2] == ["HTTP_RECV_START", "HTTP_RECV_END"]
            assert root.events[-2:] == SENT


@pytest.mark.parametrize("body,status", [((1,), 500), ((), 400)])
async def test_a_failure_has_its_text_in_the_span(open_with, document, collector, body, status):
    async with open_with(trace_config=collector.config) as site:
        asked = document(*body) if body else {"inputs": []}
        reply = await site.infer("broken", asked)

    assert reply.status == status
    root, model = collector.named("InferRequest", "broken")
    assert root.status == model.status == reply.json["error"]
    assert root.events[:2] == ["HTTP_RECV_START", "HTTP_RECV_END"]


async def test_a_collector_that_refuses_costs_no_request_and_one_line(
    open_with, document, collector, caplog
):
    collector.status = 400
    async with open_with(trace_config=collector.config) as site:
        for value in range(3):
            assert (await site.infer("echo", document(value))).status == 200
            while collector.refused <= value:
                await site.ask("GET", "/v2/health/live")
        collector.status = 200
        assert (await site.infer("echo", document(3))).status == 200

    collector.named("InferRequest", "echo", "compute")
    lines = [r.getMessage() for r in caplog.records if "spans cannot be sent" in r.getMessage()]
    assert len(lines) == 1 and collector.url in lines[0]
    assert not [r for r in caplog.records if r.name.startswith("opentelemetry")]


async def test_settings_can_be_read_and_levels_changed(open_with, document, collector):
    async with open_with(trace_config=collector.config) as site:
        path = "/v2/trace/setting"
        changed = await site.ask("POST", path, {"trace_level": ["OFF"], "url": "http://other"})
        await site.infer("echo", document(1), headers=CLIENT)

    assert changed.json == {
        "trace_level": ["OFF"],
        "trace_rate": "1",
        "trace_count": "-1",
        "trace_mode": "opentelemetry",
        "url": collector.url,
        "bsp_max_queue_size": "2048",
        "bsp_schedule_delay": "20",
        "bsp_max_export_batch_size": "512",
    }
    assert collector.spans == []


async def test_a_server_without_traces_reads_no_context(open_with, document):
    async with open_with() as site:
        assert (await site.infer("echo", document(1), headers=CLIENT)).status == 200

    assert site.backend.requests[0].trace is None
