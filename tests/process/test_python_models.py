"""What clients, metrics and the end of the server see of Python models that do not do as they should."""

import time

import numpy as np
import pytest
from conformance.model import Model
from conformance.protocol import data_of, grpc_input, tensor, wait_until
from conformance.streams import Stream
from tritonclient.utils import InferenceServerException

from .workers import CONNECTIONS

IMPORTS = """
import os, time
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
"""
CONFIG = """
backend: "python"
input [ { name: "IN" data_type: TYPE_INT32 dims: [ 1 ] } ]
output [ { name: "OUT" data_type: TYPE_INT32 dims: [ 1 ] } ]
"""
DECOUPLED = CONFIG + "model_transaction_policy { decoupled: true }"


def model(name, body, config=CONFIG):
    return Model(name, "plain", config=config, files={"1/model.py": IMPORTS + body})


POLLS = """
    def execute(self, requests):
        end = time.monotonic() + 20
        while time.monotonic() < end and not requests[0].is_cancelled():
            time.sleep(0.005)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.zeros(1, np.int32))])
                for _ in requests]
"""
CALLS = """
    def execute(self, requests):
        request = pb_utils.InferenceRequest(
            model_name="polls", requested_output_names=["OUT"], inputs=requests[0].inputs())
        print("the call ends:", request.exec().error().message())
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.zeros(1, np.int32))])
                for _ in requests]
"""
DROPS = """
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            for number in range(requests[0].inputs()[0].as_numpy()[0]):
                sender.send(pb_utils.InferenceResponse(
                    [pb_utils.Tensor("OUT", np.full(1, number, np.int32))]))
"""
WRONG = """
    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.zeros((1, 2)))])
                for _ in requests]
"""
GAUGES = """
    def initialize(self, args):
        def gauge(name, **mode):
            family = pb_utils.MetricFamily(name, name, pb_utils.MetricFamily.GAUGE, **mode)
            return family, family.Metric()
        self.last = gauge("level")
        self.sum = gauge("all_of_them")
        self.max = gauge("highest", multiprocess_mode="max")

    def execute(self, requests):
        (value,) = requests[0].inputs()[0].as_numpy()
        self.last[1].set(value)
        self.sum[1].increment(1)
        self.max[1].set(-value)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.full(1, os.getpid(), np.int32))])]
"""
BODY = {"inputs": [tensor("IN", [3], datatype="INT32")]}
DROPPED = "model 'drops' dropped the response sender of a request without the final flag"
AS_FP64 = "model 'wrong' gave output 'OUT' as FP64, its configuration says INT32; --backend-config=python,"


def inputs(value=3):
    return [grpc_input("IN", np.array([value], np.int32))]


@pytest.fixture(scope="module")
def server(launch_for_all):
    return launch_for_all(
        [
            model("polls", POLLS),
            model("calls", CALLS),
            model("drops", DROPS, DECOUPLED),
            model("wrong", WRONG),
        ]
    )


def cancelled(server, name):
    return server.metric("nv_inference_request_failure", model=name, reason="CANCELED")


@pytest.mark.parametrize("name", ["polls", "calls"])
@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_deadline_of_a_running_model_is_a_failure_in_metrics_and_statistics(
    server, protocol, name
):
    before = cancelled(server, name), cancelled(server, "polls")

    if protocol == "http":
        assert server.infer(name, BODY, {"grpc-timeout": "400m"}).status == 504
    else:
        with pytest.raises(InferenceServerException, match="DEADLINE_EXCEEDED"):
            server.grpc_client().infer(name, inputs(), client_timeout=0.4)

    assert wait_until(
        lambda: (
            (cancelled(server, name), cancelled(server, "polls")) == (before[0] + 1, before[1] + 1)
        )
    )
    for each in {name, "polls"}:
        assert server.metric("nv_inference_request_success", model=each) == 0
        statistics = server.stats(each)["inference_stats"]
        assert int(statistics["success"].get("count", 0)) == 0
        assert int(statistics["fail"]["count"]) == cancelled(server, each)
    if name == "calls":
        assert wait_until(lambda: "the call ends: Deadline Exceeded" in server.log_text())


def test_a_dropped_sender_is_an_error_to_both_protocols(server):
    with Stream(server) as stream:
        stream.send("drops", inputs(2))
        assert [int(each.as_numpy("OUT")[0]) for each in stream.take(2)] == [0, 1]
        _, error = stream.next()
        assert DROPPED in error.message()

    answer = server.post("/v2/models/drops/generate_stream", '{"IN": 2}')

    assert DROPPED in answer.body.decode()
    assert answer.body.decode().count("data: ") == 3


def test_a_dropped_sender_does_not_hold_up_an_unload_or_the_end(launch):
    server = launch(
        [model("drops", DROPS, DECOUPLED)], "--model-control-mode=explicit", "--load-model=drops"
    )
    with Stream(server) as stream:
        stream.send("drops", inputs(0))
        _, error = stream.next()
        assert DROPPED in error.message()

    assert server.post("/v2/repository/models/drops/unload").status == 200

    def state():
        return {each["name"]: each for each in server.post("/v2/repository/index").json}["drops"][
            "state"
        ]

    assert wait_until(lambda: state() == "UNAVAILABLE")
    begin = time.monotonic()
    server.stop()
    assert server.process.returncode == 0
    assert time.monotonic() - begin < 10


def test_a_wrong_output_is_an_error_to_both_protocols(server):
    answer = server.infer("wrong", BODY)
    assert answer.status == 500
    assert AS_FP64 in answer.error

    with pytest.raises(InferenceServerException) as error:
        server.grpc_client().infer("wrong", inputs())
    assert AS_FP64 in error.value.message()


def test_the_flag_in_the_error_turns_the_check_off(launch):
    server = launch([model("wrong", WRONG)], "--backend-config=python,check-outputs=false")

    answer = server.infer("wrong", BODY)

    assert data_of(answer, "OUT") == [0, 0]
    assert answer.json["outputs"][0]["datatype"] == "FP64"


def test_gauges_of_two_workers_follow_their_mode(launch):
    server = launch([model("gauges", GAUGES)], "--workers=2")
    last = {}
    for value in range(1, CONNECTIONS + 1):
        answer = server.infer("gauges", {"inputs": [tensor("IN", [value], datatype="INT32")]})
        (process,) = data_of(answer, "OUT")
        last[process] = value

    assert len(last) == 2
    assert server.metric("level") == CONNECTIONS
    assert server.metric("all_of_them") == CONNECTIONS
    assert server.metric("highest") == max(-value for value in last.values())
