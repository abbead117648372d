"""Calls over a real channel: statuses, cancellation, streams, invalid calls."""

import logging
import queue
import socket
import threading

import grpc
import numpy as np
import pytest
import tritonclient.grpc as client_library
import tritonclient.grpc.service_pb2 as pb
from tritonclient.utils import InferenceServerException


def inputs(values, name="x"):
    values = np.array(values, np.float32)
    entry = client_library.InferInput(name, values.shape, "FP32")
    entry.set_data_from_numpy(values)
    return [entry]


def status(call, request, **kwargs):
    with pytest.raises(grpc.RpcError) as error:
        call(request, **{"timeout": 20, **kwargs})
    return error.value.code().name, error.value.details()


def test_the_real_client_gets_its_answer(client):
    result = client.infer("echo", inputs([1, 2]), request_id="r")

    assert result.as_numpy("y").tolist() == [1, 2]
    assert result.get_response().id == "r"


def test_every_other_call_of_the_real_client_is_answered(client):
    assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("echo")
    assert not client.is_model_ready("absent")
    assert client.get_server_metadata().name == "triton"
    assert client.get_model_metadata("echo").inputs[0].shape == [-1]
    assert client.get_model_config("echo").config.backend == "test"
    assert client.get_inference_statistics("echo").model_stats[0].name == "echo"
    assert not client.get_system_shared_memory_status().regions
    assert not client.get_cuda_shared_memory_status().regions
    assert client.get_log_settings().settings["log_error"].bool_param
    assert client.get_trace_settings("echo").settings["trace_mode"].value == ["triton"]
    assert {each.name for each in client.get_model_repository_index().models} >= {"echo", "many"}


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda client: client.load_model("echo"), "UNAVAILABLE"),  # mode none
        (lambda client: client.unload_model("echo"), "UNAVAILABLE"),
        (
            lambda client: client.update_trace_settings(settings={"trace_file": "a"}),
            "UNIMPLEMENTED",
        ),
        (lambda client: client.update_log_settings({"log_file": "a.log"}), "UNIMPLEMENTED"),
        (lambda client: client.register_system_shared_memory("r", "/k", 8), "UNIMPLEMENTED"),
    ],
    ids=["load", "unload", "trace file", "log file", "register"],
)
def test_an_unsupported_method_has_a_status(client, call, code):
    with pytest.raises(InferenceServerException) as error:
        call(client)
    assert error.value.status() == f"StatusCode.{code}"


def test_errors_come_with_status_and_text(stub, infer_request):
    assert status(stub.ModelInfer, infer_request("absent")) == (
        "NOT_FOUND",
        "Request for unknown model: 'absent' is not found",
    )
    assert status(stub.ModelInfer, infer_request("many")) == (
        "UNIMPLEMENTED",
        "ModelInfer RPC doesn't support models with decoupled transaction policy",
    )
    wrong = infer_request()
    wrong.inputs[0].name = "z"
    assert status(stub.ModelInfer, wrong)[0] == "INVALID_ARGUMENT"


def test_a_long_error_text_reaches_the_client_in_part(stub, infer_request):
    code, text = status(stub.ModelInfer, infer_request("broken"))

    assert code == "INTERNAL"
    assert "long story: xxx" in text and text.endswith(" [...]")


def test_an_unexpected_error_is_internal_and_logged(
    served, stub, infer_request, monkeypatch, caplog
):
    def fails(*_):
        raise ZeroDivisionError("nobody thought of it")

    monkeypatch.setattr(served.server.models, "ask", fails)
    monkeypatch.setattr(served.server.tracing, "on", True)

    code, text = status(stub.ModelInfer, infer_request())

    assert (code, text) == ("INTERNAL", "ModelInfer failed: ZeroDivisionError; see the log")
    assert "nobody thought of it" in caplog.text
    monkeypatch.undo()
    assert stub.ModelInfer(infer_request()).outputs


@pytest.mark.parametrize("method", ["ModelInfer", "ModelStreamInfer", "ServerLive"])
def test_bytes_that_are_no_message_are_refused(served, method):
    with grpc.insecure_channel(served.address) as channel:
        path = f"/inference.GRPCInferenceService/{method}"
        if method == "ModelStreamInfer":
            multi = channel.stream_stream(path)
            code, text = status(lambda each, **kw: list(multi(each, **kw)), iter([b"\xff" * 40]))
        else:
            code, text = status(channel.unary_unary(path), b"\xff" * 40)

    assert code == "INVALID_ARGUMENT"
    assert "the request of 40 bytes is no inference." in text


@pytest.mark.parametrize(
    "path",
    [
        "/inference.GRPCInferenceService/Nothing",
        "/other.Service/ModelInfer",
        "/grpc.health.v1.Health/Watch",
    ],
)
def test_unknown_methods_are_unimplemented(served, path):
    with grpc.insecure_channel(served.address) as channel:
        call = channel.unary_stream if path.endswith("Watch") else channel.unary_unary
        code, _ = status(lambda each, **kw: [*call(path)(each, **kw)], b"")

    assert code == "UNIMPLEMENTED"


def test_the_health_protocol_answers(served):
    with grpc.insecure_channel(served.address) as channel:
        assert channel.unary_unary("/grpc.health.v1.Health/Check")(b"") == b"\x08\x01"


def test_noise_on_the_port_does_no_harm(served, client):
    for noise in (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\x02\x00", b"\0" * 1000):
        with socket.create_connection(("127.0.0.1", served.frontend.port)) as connection:
            connection.sendall(noise)

    assert client.infer("echo", inputs([1])).as_numpy("y").tolist() == [1]


def test_large_messages_go_both_ways(client):
    values = np.random.default_rng(1).random(3_000_000, np.float32)

    found = client.infer("echo", inputs(values)).as_numpy("y")

    assert np.array_equal(found, values)


class TestEndsOfCalls:
    @pytest.fixture
    def gate(self, serve):
        self.served = serve()
        return self.served.gate

    @pytest.fixture
    def stub(self, gate):
        with grpc.insecure_channel(self.served.address) as channel:
            yield client_library.service_pb2_grpc.GRPCInferenceServiceStub(channel)

    def version(self, name):
        return next(each for each in self.served.server.models.versions() if each.name == name)

    def queued(self):
        return self.version("gated").chain.pending

    def test_a_cancelled_call_reaches_the_model(self, gate, stub, infer_request, until):
        call = stub.ModelInfer.future(infer_request("gated"))
        assert gate.running.wait(20)

        call.cancel()

        assert gate.cancelled.wait(20)
        until(lambda: self.served.frontend._intake.in_flight == 0)

    def test_a_deadline_ends_the_call_and_reaches_the_model(self, gate, stub, infer_request):
        code, _ = status(stub.ModelInfer, infer_request("gated"), timeout=0.3)

        assert code == "DEADLINE_EXCEEDED"
        assert gate.cancelled.wait(20)

    def test_a_deadline_takes_a_request_out_of_the_queue(self, gate, stub, infer_request, until):
        intake = self.served.frontend._intake
        running = stub.ModelInfer.future(infer_request("gated"))
        assert gate.running.wait(20)

        code, _ = status(stub.ModelInfer, infer_request("gated"), timeout=0.3)

        assert code == "DEADLINE_EXCEEDED"
        until(lambda: intake.in_flight == 1 and self.queued() == 0)
        gate.open.set()
        assert running.result(20).outputs
        assert self.version("gated").statistics.failures["CANCELED"] == 1

    def test_a_deadline_on_a_stream_takes_its_requests_out_of_the_queue(
        self, gate, stub, infer_request, until
    ):
        running = stub.ModelInfer.future(infer_request("gated"))
        assert gate.running.wait(20)

        with pytest.raises(grpc.RpcError) as error:
            list(stub.ModelStreamInfer(iter([infer_request("gated")] * 3), timeout=0.3))

        assert error.value.code().name == "DEADLINE_EXCEEDED"
        until(lambda: self.queued() == 0)
        gate.open.set()
        assert running.result(20).outputs

    def test_a_cancelled_stream_reaches_the_model(self, gate, stub, infer_request, until):
        more = threading.Event()

        def requests():
            yield infer_request("gated")
            more.wait(20)

        stream = stub.ModelStreamInfer(requests())
        assert gate.running.wait(20)

        stream.cancel()

        assert gate.cancelled.wait(20)
        until(lambda: self.served.frontend._intake.in_flight == 0)
        more.set()

    def test_a_client_that_vanishes_is_noticed(self, gate, infer_request):
        channel = grpc.insecure_channel(self.served.address)
        stub = client_library.service_pb2_grpc.GRPCInferenceServiceStub(channel)
        call = stub.ModelInfer.future(infer_request("gated"))
        assert gate.running.wait(20)

        channel.close()

        assert gate.cancelled.wait(20)
        assert call.done()


def test_clients_that_leave_just_before_their_answer_are_no_news_for_the_log(
    stub, infer_request, caplog
):
    calls = [stub.ModelInfer.future(infer_request()) for _ in range(300)]
    for call in calls[::2]:
        call.cancel()
    streams = [stub.ModelStreamInfer(iter([infer_request("many", range(50))])) for _ in range(20)]
    for stream in streams:
        next(stream)
        stream.cancel()

    assert all(call.result(20).outputs for call in calls[1::2])
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


class TestStreams:
    def test_a_decoupled_model_answers_each_element(self, stub, infer_request):
        found = list(stub.ModelStreamInfer(iter([infer_request("many", [1, 2, 3], id="m")])))

        assert [each.infer_response.id for each in found] == ["m"] * 3
        raws = [each.infer_response.raw_output_contents[0] for each in found]
        assert [np.frombuffer(raw, np.float32)[0] for raw in raws] == [1, 2, 3]

    def test_many_requests_answer_in_order(self, stub, infer_request):
        requests = [infer_request(values=[number], id=str(number)) for number in range(500)]

        found = list(stub.ModelStreamInfer(iter(requests)))

        assert [each.infer_response.id for each in found] == [str(n) for n in range(500)]

    def test_an_error_leaves_the_stream_open(self, stub, infer_request):
        found = list(stub.ModelStreamInfer(iter([infer_request("absent"), infer_request()])))

        assert [bool(each.error_message) for each in found] == [True, False]

    def test_with_statuses_an_error_ends_it(self, stub, infer_request):
        call = stub.ModelStreamInfer(
            iter([infer_request("absent"), infer_request()]),
            metadata=(("triton_grpc_error", "true"),),
        )

        code, text = status(lambda each, **_: list(each), call)

        assert (code, text) == ("NOT_FOUND", "Request for unknown model: 'absent' is not found")

    def test_the_real_client_streams(self, client):
        answers = queue.Queue()
        client.start_stream(callback=lambda result, error: answers.put((result, error)))
        client.async_stream_infer(
            "many", inputs([5, 6]), request_id="m", enable_empty_final_response=True
        )

        found = [answers.get(timeout=20) for _ in range(3)]
        client.stop_stream()

        assert [error for _, error in found] == [None] * 3
        finals = [
            result.get_response().parameters["triton_final_response"].bool_param
            for result, _ in found
        ]
        assert finals == [False, False, True]

    def test_streams_of_many_clients_do_not_mix(self, served, infer_request):
        def run(number, found):
            with grpc.insecure_channel(served.address) as channel:
                stub = client_library.service_pb2_grpc.GRPCInferenceServiceStub(channel)
                request = infer_request("many", [number] * 20)
                for each in stub.ModelStreamInfer(iter([request])):
                    found.append(np.frombuffer(each.infer_response.raw_output_contents[0], "f4")[0])

        found = [[] for _ in range(5)]
        threads = [threading.Thread(target=run, args=each) for each in enumerate(found)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert found == [[number] * 20 for number in range(5)]


def test_a_message_of_the_client_is_one_of_ours(stub):
    assert isinstance(stub.ServerReady(pb.ServerReadyRequest()), pb.ServerReadyResponse)
