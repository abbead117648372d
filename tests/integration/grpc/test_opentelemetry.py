"""Spans of gRPC requests, received by a collector."""

import grpc
import pytest
import tritonclient.grpc.service_pb2 as pb
import tritonclient.grpc.service_pb2_grpc as pb_grpc

TRACE, SPAN = "0af7651916cd43dd8448eb211c12666c", "b7ad6b7169203331"
CLIENT = (("traceparent", f"00-{TRACE}-{SPAN}-01"), ("tracestate", "a=b"), ("tracestate", "c=d"))
EVENTS = [
    "GRPC_WAITREAD_START",
    "GRPC_WAITREAD_END",
    "INFER_RESPONSE_COMPLETE",
    "GRPC_SEND_START",
    "GRPC_SEND_END",
]


@pytest.fixture
def ask(serve, collector):
    """Call with the stub of a server that sends its spans to the collector, until it has ended."""

    def call(action, *settings):
        config = collector.config
        config[""] += settings
        served = serve(trace_config=config)
        with grpc.insecure_channel(served.address) as channel:
            result = action(pb_grpc.GRPCInferenceServiceStub(channel))
        served.close()
        return result

    return call


def test_a_request_has_a_span_below_that_of_its_client(ask, collector, infer_request):
    ask(lambda stub: stub.ModelInfer(infer_request(), metadata=CLIENT), ("rate", "0"))

    assert collector.tree() == [("", "InferRequest"), ("InferRequest", "echo"), ("echo", "compute")]
    (root,) = collector.named("InferRequest")
    assert (root.trace, root.parent, root.state) == (TRACE, SPAN, "a=b,c=d")
    assert root.events == EVENTS


def test_each_request_of_a_stream_has_a_span(ask, collector, infer_request):
    requests = [infer_request("many", (1, 2)), infer_request("many", (3,))]

    ask(lambda stub: list(stub.ModelStreamInfer(iter(requests), metadata=CLIENT)), ("rate", "0"))

    roots = [span for span in collector.spans if span.name == "InferRequest"]
    assert [root.parent for root in roots] == [SPAN, SPAN]
    answers = sorted(root.events.count("GRPC_SEND_END") for root in roots)
    assert answers == [1, 2]


@pytest.mark.parametrize("model,values", [("broken", (1,)), ("echo", None)])
def test_a_failure_has_its_text_in_the_span(ask, collector, infer_request, model, values):
    message = infer_request(model, values) if values else pb.ModelInferRequest(model_name=model)

    def fail(stub):
        with pytest.raises(grpc.RpcError) as caught:
            stub.ModelInfer(message, metadata=(("traceparent", "none"),))
        return caught.value.details()

    details = ask(fail)

    root, span = collector.named("InferRequest", model)
    assert root.parent == ""
    assert span.status == root.status and root.status.startswith(details[:100])
    assert root.events[:2] == EVENTS[:2]


def test_settings_have_their_values_as_lists(ask, collector):
    found = ask(lambda stub: stub.TraceSetting(pb.TraceSettingRequest()))

    settings = {key: list(value.value) for key, value in found.settings.items()}
    assert settings["trace_mode"] == ["opentelemetry"]
    assert settings["url"] == [collector.url]
    assert "trace_file" not in settings
