"""Traces of gRPC requests."""

import json

import grpc
import tritonclient.grpc.service_pb2_grpc as pb_grpc


def test_a_trace_has_the_times_of_reading_and_sending(serve, infer_request, tmp_path):
    path = tmp_path / "trace"
    served = serve(
        trace_config={"": [("level", "TIMESTAMPS"), ("rate", "1")], "triton": [("file", str(path))]}
    )
    with grpc.insecure_channel(served.address) as channel:
        stub = pb_grpc.GRPCInferenceServiceStub(channel)
        stub.ModelInfer(infer_request())
        responses = list(stub.ModelStreamInfer(iter([infer_request()])))
    served.close()

    assert len(responses) == 1
    entries = json.loads(path.read_text())
    first, second = (
        [stamp["name"] for e in entries if e["id"] == id for stamp in e.get("timestamps", ())]
        for id in (1, 2)
    )
    assert first[:3] == ["GRPC_WAITREAD_START", "GRPC_WAITREAD_END", "REQUEST_START"]
    assert first[-3:] == ["REQUEST_END", "GRPC_SEND_START", "GRPC_SEND_END"]
    assert second[:3] == ["GRPC_WAITREAD_START", "GRPC_WAITREAD_END", "REQUEST_START"]
    assert second[-2:] == ["GRPC_SEND_START", "GRPC_SEND_END"]
