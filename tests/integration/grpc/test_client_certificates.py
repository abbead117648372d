"""Callers over gRPC that only their certificates name, in every engine."""

import grpc
import pytest
import tritonclient.grpc.service_pb2_grpc as pb_grpc

PATIENCE_S = 20


@pytest.fixture
def mutual(certificates):
    return {
        "grpc_use_ssl_mutual": True,
        "grpc_server_cert": str(certificates.server_crt),
        "grpc_server_key": str(certificates.server_key),
        "grpc_root_cert": str(certificates.root_crt),
    }


@pytest.fixture
def channel(certificates):
    """Open a channel that shows the client's certificate, whose name is `localhost`."""
    credentials = grpc.ssl_channel_credentials(
        certificates.root_crt.read_bytes(),
        certificates.client_key.read_bytes(),
        certificates.client_crt.read_bytes(),
    )

    def opened(served):
        target = f"localhost:{served.frontend.port}"
        return grpc.secure_channel(target, credentials)

    return opened


def test_the_limits_are_those_of_the_certificate(serve, mutual, channel, infer_request):
    served = serve(**mutual, limit_rate=0.001, limit_burst=1)
    for place in range(2):  # another connection is the same caller
        with channel(served) as opened:
            infer = pb_grpc.GRPCInferenceServiceStub(opened).ModelInfer
            if place == 0:
                infer(infer_request(), timeout=PATIENCE_S)
            with pytest.raises(grpc.RpcError) as refused:
                infer(infer_request(), timeout=PATIENCE_S)
        assert refused.value.details().startswith("caller 'localhost' has sent more")


def test_a_stream_of_a_certificate_counts_each_request(serve, mutual, channel, infer_request):
    served = serve(**mutual, limit_rate=0.001, limit_burst=2)
    with channel(served) as opened:
        stream = pb_grpc.GRPCInferenceServiceStub(opened).ModelStreamInfer
        answers = stream(iter([infer_request()] * 3), timeout=PATIENCE_S)
        with pytest.raises(grpc.RpcError) as refused:
            for _ in answers:
                pass

    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert refused.value.details().startswith("caller 'localhost' has sent more")
