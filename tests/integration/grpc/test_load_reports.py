"""Load reports over gRPC: which calls have one in their trailers, with both engines."""

import json

import grpc
import pytest
import tritonclient.grpc.service_pb2_grpc as pb_grpc

from frontends.shared.access.tokens import line_of

WANTED = (("endpoint-load-metrics-format", "json"),)
REPORT = "endpoint-load-metrics"


def trailers(call):
    return dict(call.trailing_metadata())


def report(call):
    kind, _, text = trailers(call)[REPORT].partition(" ")
    assert kind == "JSON"
    return json.loads(text)


def test_a_call_has_the_report_that_it_asks_for(stub, infer_request):
    _, call = stub.ModelInfer.with_call(infer_request("echo", [1, 2]), metadata=WANTED, timeout=20)

    assert report(call)["named_metrics"]["requests_pending"] == 0


def test_the_form_may_be_text(stub, infer_request):
    metadata = (("endpoint-load-metrics-format", "text"),)
    _, call = stub.ModelInfer.with_call(infer_request("echo", [1]), metadata=metadata, timeout=20)

    assert trailers(call)[REPORT].startswith("TEXT ")


def test_a_stream_has_it_after_its_last_response(stub, infer_request):
    call = stub.ModelStreamInfer(iter([infer_request("many", [1, 2])]), metadata=WANTED, timeout=20)

    assert len(list(call)) >= 2
    assert "named_metrics" in report(call)


@pytest.mark.parametrize("model", ["broken", "absent"])
def test_an_error_has_it_beside_its_status(stub, infer_request, model):
    with pytest.raises(grpc.RpcError) as error:
        stub.ModelInfer(infer_request(model, [1]), metadata=WANTED, timeout=20)

    assert error.value.details() and "named_metrics" in report(error.value)


@pytest.mark.parametrize("metadata", [(), (("endpoint-load-metrics-format", "xml"),)])
def test_other_calls_have_none(stub, infer_request, metadata):
    _, call = stub.ModelInfer.with_call(infer_request("echo", [1]), metadata=metadata, timeout=20)

    assert REPORT not in trailers(call)


def test_a_caller_that_is_refused_learns_nothing_of_the_load(serve, infer_request, tmp_path):
    path = tmp_path / "tokens"
    path.write_text(line_of("read", ["read"], "read"))
    served = serve(auth_tokens=str(path))

    for token in ((), (("authorization", "Bearer read"),)):
        with grpc.insecure_channel(served.address) as channel:
            stub = pb_grpc.GRPCInferenceServiceStub(channel)
            with pytest.raises(grpc.RpcError) as error:
                stub.ModelInfer(infer_request("echo", [1]), metadata=(*WANTED, *token), timeout=20)
        assert REPORT not in trailers(error.value)
