"""The KServe v2 protocol through Serve's gRPC proxy, as docs/operate/ray.md has it."""

import queue
import time

import grpc
import numpy as np
import pytest
import tritonclient.grpc as triton
from core_ray import CoreDeployment
from ray import serve
from tritonclient.utils import InferenceServerException

import core

HEADERS = {"application": "over_grpc"}
PIXELS = np.random.default_rng(0).random((3, 8, 8), np.float32)


@pytest.fixture(scope="module")
def client(cluster, grpc_port, repository):
    """A client of the proxy; HEADERS name the application of one replica."""
    bound = CoreDeployment.bind(model_repository=str(repository))
    serve.run(bound, name="over_grpc", route_prefix="/over_grpc")
    with triton.InferenceServerClient(f"127.0.0.1:{grpc_port}") as made:
        yield made
    serve.delete("over_grpc")


def tensor(name, array, datatype):
    made = triton.InferInput(name, list(array.shape), datatype)
    made.set_data_from_numpy(array)
    return made


def wait(ms):
    return [tensor("ms", np.array([[ms]], np.int32), "INT32")]


def test_a_request_is_answered_as_by_the_server_itself(client, repository):
    inputs = [tensor("pixels", PIXELS, "FP32")]

    found = client.infer("digits", inputs, request_id="mine", headers=HEADERS)

    with core.Server(model_repository=repository) as server:
        expected = server.infer("digits", {"pixels": PIXELS})["probabilities"]
    assert found.get_response().id == "mine"
    np.testing.assert_allclose(found.as_numpy("probabilities"), expected, rtol=1e-5)


def test_a_request_without_an_id_gets_that_of_serve(client):
    inputs = [tensor("pixels", PIXELS, "FP32")]

    of_serve = client.infer("digits", inputs, headers={**HEADERS, "request_id": "of-serve"})
    made_by_serve = client.infer("digits", inputs, headers=HEADERS)

    assert of_serve.get_response().id == "of-serve"
    assert made_by_serve.get_response().id


def test_the_other_methods_are_answered_too(client):
    assert client.is_server_ready(headers=HEADERS)
    assert client.is_model_ready("digits", headers=HEADERS)
    assert client.get_model_metadata("digits", headers=HEADERS).inputs[0].name == "pixels"
    models = client.get_model_repository_index(headers=HEADERS).models
    assert {each.name for each in models} == {"digits", "breast_cancer", "wait"}


def test_a_refusal_keeps_its_status_and_its_text(client):
    with pytest.raises(InferenceServerException, match="pixels") as found:
        client.infer("digits", [tensor("pixels", PIXELS[:, :4], "FP32")], headers=HEADERS)
    assert found.value.status() == "StatusCode.INVALID_ARGUMENT"

    with pytest.raises(InferenceServerException, match="unknown") as found:
        client.get_model_metadata("unknown", headers=HEADERS)
    assert found.value.status() in ("StatusCode.NOT_FOUND", "StatusCode.INVALID_ARGUMENT")


def test_a_stream_gets_a_response_for_each_request(client):
    found = queue.Queue()
    client.start_stream(lambda result, error: found.put((result, error)), headers=HEADERS)

    for ms in (30, 20, 10):
        client.async_stream_infer("wait", wait(ms))
    answers = [found.get(timeout=60) for _ in range(3)]
    client.stop_stream()

    assert [error for _, error in answers] == [None] * 3
    assert sorted(int(each.as_numpy("ms_out")[0, 0]) for each, _ in answers) == [10, 20, 30]


def test_a_cancelled_call_ends_its_request(client):
    answers = queue.Queue()

    def put(result, error):
        answers.put(result)

    client.async_infer("wait", wait(1500), put, headers=HEADERS)
    waiting = client.async_infer("wait", wait(60_000), lambda result, error: None, headers=HEADERS)
    time.sleep(0.7)  # until the server has both

    waiting.cancel()

    assert answers.get(timeout=60).as_numpy("ms_out") == [[1500]]
    assert client.infer("wait", wait(1), headers=HEADERS, client_timeout=30)


def test_the_proxy_lists_the_service(client, grpc_port):
    from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
        ProtoReflectionDescriptorDatabase,
    )

    with grpc.insecure_channel(f"127.0.0.1:{grpc_port}") as channel:
        services = ProtoReflectionDescriptorDatabase(channel).get_services()

    assert "inference.GRPCInferenceService" in services
