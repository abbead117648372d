"""InferenceGraphs of examples/kserve: the server answers the bodies that KServe's router makes."""

import json
import urllib.error
import urllib.request

import numpy as np
import pytest

import core
from tests.deploy.kserve_sdk.objects import GRAPHS, SERVICES, of_kind

pytest.importorskip(
    "frontend_tfserving", reason="frontend-tfserving, which has :predict, is missing"
)
STEP = {"v1": "/v1/models/{}:predict", "v2": "/v2/models/{}/infer"}
TENSOR = {"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}


def features(x):
    return {"y": x + 1}


def wine(x):
    return {"kind": x.sum(1, keepdims=True).astype(np.int64), "certainty": x[:, :1]}


def words(kind, certainty):
    return {"text": np.char.add(kind.astype(str), certainty.astype(str)).astype(object)}


@pytest.fixture(scope="module")
def port():
    pair = ("FP32", [2])
    wines = {"kind": ("INT64", [1]), "certainty": ("FP32", [1])}
    with core.Server() as server:
        server.bind("features", features, inputs={"x": pair}, outputs={"y": pair}, batching=True)
        server.bind("cancer", features, inputs={"x": pair}, outputs={"y": pair}, batching=True)
        server.bind("wine", wine, inputs={"x": pair}, outputs=wines, batching=True)
        server.bind("words", words, inputs=wines, outputs={"text": ("BYTES", [1])}, batching=True)
        yield server.serve(http_port=0, grpc_port=0)["http"]


def ask(port, protocol, name, body):
    """Return (status, body) for the request that a step sends."""
    path = STEP[protocol].format(name)
    header = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body, header)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def mapped(body):
    """Return the body that the router makes for a step with mapPredictionsToInstances: one member."""
    predictions = json.loads(body).get("predictions")
    return json.dumps({"instances": predictions}).encode() if predictions else body


def steps(graph):
    """Return the steps of a graph of examples/kserve, each with the protocol by which it is called."""
    services = of_kind(SERVICES, "InferenceService")
    found = of_kind(GRAPHS, "InferenceGraph")[graph]["spec"]["nodes"]["root"]["steps"]
    models = [services[each["serviceName"]]["spec"]["predictor"]["model"] for each in found]
    return [(each, model["protocolVersion"]) for each, model in zip(found, models, strict=True)]


def run(port, sequence, request):
    """Run a sequence as the router does; return the answer of its last step."""
    response = b""
    for each, protocol in sequence:
        body = response if each["data"] == "$response" else request
        if each.get("mapPredictionsToInstances"):
            body = mapped(body)
        status, response = ask(port, protocol, each["serviceName"], body)
        assert status == 200, (each["name"], body, response)
    return json.loads(response)


def test_a_sequence_gives_the_answer_of_each_step_to_the_next(port):
    answer = run(port, steps("two-steps"), b'{"instances": [[1, 2], [3, 4]]}')

    assert answer == {
        "predictions": [{"kind": [5], "certainty": [2.0]}, {"kind": [9], "certainty": [4.0]}]
    }


def test_a_step_takes_rows_with_names_from_the_one_before(port):
    third = {"name": "words", "serviceName": "words", "data": "$response"}
    sequence = [*steps("two-steps"), ({**third, "mapPredictionsToInstances": True}, "v1")]

    answer = run(port, sequence, b'{"instances": [[1, 2], [3, 4]]}')

    assert answer == {"predictions": [["52.0"], ["94.0"]]}


@pytest.mark.parametrize(
    ("body", "rows"),
    [
        (b'{"instances":[[5,-0]]}', [[6, 1]]),  # whole numbers for an input of floats
        (b'{"instances":[[1e-7,1e+21]]}', [[1 + 1e-7, 1e21]]),
        (b'{"instances":[[0.10000000149011612,3.4028234663852886e+38]]}', [[1.1, 3.4028235e38]]),
    ],
)
def test_numbers_are_read_as_go_writes_them(port, body, rows):
    status, answer = ask(port, "v1", "features", body)

    assert status == 200, answer
    np.testing.assert_allclose(json.loads(answer)["predictions"], rows, rtol=1e-6)


@pytest.mark.parametrize(
    ("graph", "name"),
    [("choice", "wine"), ("choice", "cancer"), ("canary", "cancer"), ("both", "cancer")],
)
def test_members_that_choose_a_step_do_not_disturb_it(port, graph, name):
    """The router sends the whole body of the client to the chosen steps."""
    (protocol,) = {how for each, how in steps(graph) if each["serviceName"] == name}
    own = {"instances": [[1, 2]]} if protocol == "v1" else {"inputs": [TENSOR]}
    others = {"kind": name, "route": {"by": ["kind", 1, None]}}

    plain = ask(port, protocol, name, json.dumps(own).encode())
    status, answer = ask(port, protocol, name, json.dumps({**others, **own}).encode())

    assert (status, json.loads(answer)) == (200, json.loads(plain[1]))


def test_a_body_without_instances_is_refused_by_name(port):
    """What a step gets if the one before speaks v1, and the router has not been told to map its answer."""
    status, answer = ask(port, "v1", "wine", b'{"predictions": [[2, 3]]}')

    assert status == 400
    assert "instances" in json.loads(answer)["error"]
