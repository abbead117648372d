"""Models of any backend: ONNX, a forest, and an ensemble with steps in Python, of examples/models."""

from pathlib import Path

import grpc
import numpy as np
import pytest
from frontend_tfserving.rpc import messages

import core
from core import dtypes

from .conftest import Rest
from .protos import spec, tensor

MODELS = Path(__file__).parents[3] / "examples" / "models"
WINES = np.array(
    [
        [13.2, 1.8, 2.4, 16, 100, 2.8, 3.1, 0.3, 2.3, 5.6, 1.1, 3.4, 1200],
        [12.4, np.nan, 2.2, 20, 88, 2.2, 2.1, 0.4, 1.6, 3.1, 1.0, 2.8, 500],
    ],
    np.float32,
)
MEASUREMENTS = [b'{"alcohol": 13.2, "flavanoids": 3.1, "proline": 1200}', b'{"hue": 0.6}']
REQUESTS = {
    "digits": {"pixels": np.arange(128, dtype=np.float32).reshape(2, 8, 8) % 17},
    "wine": {"input__0": WINES},
    "wine_pipeline": {"measurements": np.array(MEASUREMENTS, object).reshape(2, 1)},
}
SEQUENCES = """backend: "identity" max_batch_size: 4 sequence_batching { }
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 1 ] } ]
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    for name in ("onnx", "fil", "python"):
        pytest.importorskip(f"backend_{name}", reason=f"backend-{name} is not installed")
    own = tmp_path_factory.mktemp("models")
    (own / "sequences" / "1").mkdir(parents=True)
    (own / "sequences" / "config.pbtxt").write_text(SEQUENCES)
    folders = [str(MODELS), str(own)]
    names = [*REQUESTS, "sequences"]
    with core.Server(
        model_repository=folders, model_control_mode="explicit", load_model=names
    ) as found:
        yield found


@pytest.fixture(scope="module")
def ports(server):
    return server.serve(http_port=0, grpc_port=0)


@pytest.fixture(scope="module")
def rest(ports):
    return Rest(ports["http"])


@pytest.fixture
def call(ports):
    """call(method, request, response): answer of PredictionService."""
    with grpc.insecure_channel(f"127.0.0.1:{ports['grpc']}") as channel:

        def called(method, request, response):
            send = channel.unary_unary(
                f"/tensorflow.serving.PredictionService/{method}",
                lambda message: message.SerializeToString(),
                getattr(messages, response).FromString,
            )
            return send(request, timeout=60)

        yield called


def in_json(array):
    """Return an array as nested lists, with text in place of bytes."""
    texts = [each.decode() if isinstance(each, bytes) else each for each in array.ravel().tolist()]
    return np.array(texts, object).reshape(array.shape).tolist()


def same(found, expected):
    """Compare values of JSON with an array."""
    if expected.dtype == object:
        assert found == in_json(expected)
    else:
        np.testing.assert_allclose(np.array(found, expected.dtype), expected, rtol=1e-6)


def named(found, outputs):
    """Return the values of outputs by name: one output has no name."""
    return found if len(outputs) > 1 else dict.fromkeys(outputs, found)


@pytest.mark.parametrize("model", REQUESTS)
def test_rows_and_columns_over_rest(server, rest, model):
    inputs = REQUESTS[model]
    expected = server.infer(model, inputs)
    columns = {name: in_json(array) for name, array in inputs.items()}
    rows = [{name: each[i] for name, each in columns.items()} for i in range(2)]

    status, by_rows = rest.post(f"/v1/models/{model}:predict", {"instances": rows})
    assert status == 200, by_rows
    status, by_columns = rest.post(f"/v1/models/{model}:predict", {"inputs": columns})
    assert status == 200, by_columns

    for name, array in expected.items():
        same(named(by_columns["outputs"], expected)[name], array)
        same([named(row, expected)[name] for row in by_rows["predictions"]], array)


@pytest.mark.parametrize("model", REQUESTS)
def test_predict_over_grpc(server, call, model):
    ((name, array),) = REQUESTS[model].items()
    expected = server.infer(model, REQUESTS[model])
    request = messages.PredictRequest(model_spec=spec(model))
    if array.dtype == object:
        given = tensor(dtypes.BYTES, array.shape, string_val=array.ravel().tolist())
    else:
        given = tensor(dtypes.FP32, array.shape, tensor_content=array.tobytes())
    request.inputs[name].CopyFrom(given)

    answer = call("Predict", request, "PredictResponse")

    assert set(answer.outputs) == set(expected)
    for name, array in expected.items():
        found = answer.outputs[name]
        assert [dim.size for dim in found.tensor_shape.dim] == list(array.shape)
        if array.dtype == object:
            assert list(found.string_val) == array.ravel().tolist()
        else:
            np.testing.assert_allclose(list(found.float_val), array.ravel(), rtol=1e-6)


def test_a_forest_classifies(server, rest):
    expected = server.infer("wine", REQUESTS["wine"])["output__0"]
    examples = [{"input__0": each} for each in WINES.tolist()]

    status, answer = rest.post("/v1/models/wine:classify", {"examples": examples})

    assert status == 200, answer
    assert [[label for label, _ in row] for row in answer["results"]] == [["0", "1", "2"]] * 2
    same([[score for _, score in row] for row in answer["results"]], expected)


@pytest.mark.parametrize("model", REQUESTS)
def test_metadata_have_the_inputs_and_outputs(server, rest, model):
    status, answer = rest.get(f"/v1/models/{model}/metadata")

    assert status == 200
    found = answer["metadata"]["signature_def"]["signature_def"]["serving_default"]
    assert set(found["inputs"]) == set(REQUESTS[model])
    assert set(found["outputs"]) == set(server.infer(model, REQUESTS[model]))


def test_a_request_to_a_model_with_sequences_is_refused(rest):
    status, answer = rest.post("/v1/models/sequences:predict", {"instances": [[1]]})

    assert status == 400
    assert "correlation ID" in answer["error"]
