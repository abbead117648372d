"""A server with functions as models, reached as clients of TensorFlow Serving reach it."""

import json
import urllib.error
import urllib.request

import grpc
import numpy as np
import pytest

import core

# Now: the tests of plugins forget modules that were imported first within them, and areas are made once.
import frontends.http.frontend  # noqa: F401


def double(x):
    if (x < -1e6).any():
        raise ValueError("too low")
    return {"y": x * 2}


def twice(x):
    return {"y": x + x}


def mixed(text, number):
    upper = [each.upper() for each in text.ravel().tolist()]
    return {"upper": np.array(upper, object).reshape(text.shape), "squared": number * number}


def image(picture):
    """The bytes of a picture and their number."""
    flat = picture.ravel().tolist()
    sizes = np.array([len(each) for each in flat], np.int32).reshape(picture.shape)
    return {"picture_bytes": picture, "size": sizes}


def scores(x):
    return {"scores": np.stack([x[:, 0], 1 - x[:, 0]], 1)}


def total(x):
    return {"outputs": x.sum(1, keepdims=True)}


def odd(x):
    with np.errstate(all="ignore"):
        return {"y": np.log(x)}


def parser(inputs):
    """The serialized example as its class."""
    return {"classes": inputs}


def words(text_input):
    for each in text_input.ravel()[0].split():
        yield {"text_output": np.array([each], object)}


VECTOR = """backend: "identity" max_batch_size: 4
input { name: "INPUT0" data_type: TYPE_FP32 dims: [ 1 ] reshape { } }
output { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 1 ] reshape { } }"""


def parameters(**values):
    return {"parameters": {name: {"string_value": value} for name, value in values.items()}}


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    models = tmp_path_factory.mktemp("models")
    (models / "vector" / "1").mkdir(parents=True)
    (models / "vector" / "config.pbtxt").write_text(VECTOR)
    rows = {"batching": True, "max_batch_size": 4}
    vector = {"inputs": {"x": ("FP32", [-1])}}
    with core.Server(model_repository=str(models)) as found:
        more = parameters(
            **{"version_label.stable": "1", "signature.pairs": "mixed", "explainer": "total"}
        )
        found.bind("double", double, **vector, outputs={"y": ("FP32", [-1])}, config=more, **rows)
        text = {"inputs": {"inputs": ("BYTES", [1])}, "outputs": {"classes": ("BYTES", [1])}}
        named = parameters(TF_SIGNATURE_DEF="classification")
        found.bind("parser", parser, **text, config=named, **rows)
        found.bind("odd", odd, **vector, outputs={"y": ("FP32", [-1])}, **rows)
        found.bind("half", twice, inputs={"x": ("FP16", [1])}, outputs={"y": ("FP16", [1])}, **rows)
        found.bind("whole", double, inputs={"x": ("INT8", [2])}, outputs={"y": ("INT8", [2])})
        one = {"inputs": {"x": ("FP32", [1])}, "outputs": {"y": ("FP32", [1])}}
        found.bind("one", twice, **one, **rows)
        found.bind(
            "mixed",
            mixed,
            inputs={"text": ("BYTES", [1]), "number": ("INT64", [1])},
            outputs={"upper": ("BYTES", [1]), "squared": ("INT64", [1])},
            **rows,
        )
        found.bind(
            "image",
            image,
            inputs={"picture": ("BYTES", [1])},
            outputs={"picture_bytes": ("BYTES", [1]), "size": ("INT32", [1])},
            **rows,
        )
        found.bind("scores", scores, **vector, outputs={"scores": ("FP32", [2])}, **rows)
        found.bind("total", total, **vector, outputs={"outputs": ("FP32", [1])}, **rows)
        found.bind(
            "words",
            words,
            inputs={"text_input": ("BYTES", [1])},
            outputs={"text_output": ("BYTES", [1])},
        )
        yield found


@pytest.fixture(scope="session")
def ports(server):
    return server.serve(http_port=0, grpc_port=0)


class Rest:
    """A client of the REST API. Each method returns (status, document)."""

    def __init__(self, port):
        self._base = f"http://127.0.0.1:{port}"

    def post(self, path, document, headers=None):
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        return self._ask(urllib.request.Request(self._base + path, body, headers or {}))

    def get(self, path):
        return self._ask(urllib.request.Request(self._base + path))

    def _ask(self, request):
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())


@pytest.fixture(scope="session")
def rest(ports):
    return Rest(ports["http"])


@pytest.fixture(scope="session")
def channel(ports):
    with grpc.insecure_channel(f"127.0.0.1:{ports['grpc']}") as found:
        yield found
