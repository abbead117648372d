"""Classes with a predict, as Seldon Core has them."""

import json
import re
import time
from pathlib import Path

import numpy as np
import pytest

from core import CoreError
from core.request import InferenceRequest
from core.tensor import Tensor

TENSOR = '{ name: "%s" data_type: TYPE_%s dims: [ %s ] }'


def config_of(inputs, outputs, more="", **parameters):
    """Return the text of config.pbtxt.

    inputs, outputs   (name, datatype, dims) each
    parameters        name → value of `parameters`
    """
    text = "".join(f"input [ {TENSOR % each} ]" for each in inputs)
    text += "".join(f"output [ {TENSOR % each} ]" for each in outputs)
    for key, value in parameters.items():
        text += f'parameters {{ key: "{key}" value {{ string_value: {json.dumps(value)} }} }}'
    return text + more


X_TO_Y = ([("x", "FP32", "-1, 2")], [("y", "FP32", "-1, 2")])
X = np.array([[1, 2], [3, 4]], np.float32)


@pytest.fixture
def serve(version, server):
    """Write a file into the version's folder, and load the model."""

    def start(source, config=None, file="model.py"):
        folder = version(config)
        (folder / file).write_text(source)
        server.load()
        return server

    return start


def test_a_class_without_any_configuration_takes_x_and_returns_the_result_of_predict(serve):
    server = serve(
        "class Model:\n"
        "    def load(self):\n        self.factor = 3\n"
        "    def predict(self, X, features_names=None):\n        return X * self.factor\n"
        "    def predict_proba(self, X):\n        return [[0.25, 0.75]] * len(X)\n"
    )

    answer = server.ask({"X": X.astype(float)})

    np.testing.assert_array_equal(answer["predict"], X * 3)
    np.testing.assert_array_equal(answer["predict_proba"], [[0.25, 0.75]] * 2)
    assert list(server.ask({"X": X.astype(float)}, outputs=["predict_proba"])) == ["predict_proba"]


def test_the_class_of_the_documentation_is_served(serve):
    page = Path(__file__).parents[3] / "docs" / "serve" / "other-classes.md"
    server = serve(re.search(r"```python\n(.*?)```", page.read_text(), re.DOTALL)[1])

    answer = server.ask({"X": np.array([[1, 1], [0.5, 0.5]])})

    assert answer["predict"].ravel().tolist() == [1, 0]


@pytest.mark.parametrize(
    "given,factor",
    [
        ('{"factor": 4}', 4),
        ('[{"name": "factor", "value": "5", "type": "INT"}]', 5),
        (None, 2),
    ],
    ids=["object", "list of Seldon Core", "none"],
)
def test_model_parameters_go_to_the_constructor(serve, given, factor):
    parameters = {"MODEL_PARAMETERS": given} if given else {}
    server = serve(
        "class Scale:\n    def __init__(self, factor=2):\n        self.factor = factor\n"
        "    def predict(self, X):\n        return X * self.factor\n",
        config_of(*X_TO_Y, **parameters),
    )

    np.testing.assert_array_equal(server.ask({"x": X})["y"], X * factor)


def test_a_class_is_found_in_the_file_of_its_name_as_seldon_core_does(serve):
    server = serve(
        "class Other:\n    def predict(self, X):\n        return 0\n"
        "class Iris:\n    def predict(self, X):\n        return -X\n",
        'backend: "python"' + config_of(*X_TO_Y, MODEL_CLASS="Iris"),
        file="Iris.py",
    )

    np.testing.assert_array_equal(server.ask({"x": X})["y"], -X)


def test_several_inputs_are_columns_with_names(serve):
    server = serve(
        "class Model:\n    def predict(self, X, names):\n"
        "        return [f'{n}={v}' for row in X for n, v in zip(names, row)]\n",
        config_of(
            [("age", "INT32", "-1"), ("city", "STRING", "-1")], [("text", "STRING", "-1")], ""
        ),
    )

    answer = server.ask({"age": np.array([7], np.int32), "city": np.array(["Ulm"], object)})

    assert answer["text"].tolist() == [b"age=7", b"city=Ulm"]


def test_tags_class_names_and_meta_travel_as_parameters(serve):
    served = serve(
        "class Model:\n    def predict(self, X, names, meta=None):\n        self.meta = meta\n"
        "        return X\n"
        "    def tags(self):\n        return {'id': self.meta['puid'], **self.meta['tags']}\n"
        "    def class_names(self):\n        return ['a', 'b']\n"
        "    def metrics(self):\n"
        "        return [{'type': 'COUNTER', 'key': 'seen', 'value': 2}]\n",
        config_of(*X_TO_Y),
    )

    async def ask():
        request = InferenceRequest(
            "example", {"x": Tensor.of("x", X)}, id="seven", parameters={"color": "red"}
        )
        response = await served._server.models.infer(request)
        found = [
            each for each in served._server.control.health.metrics_here() if each.name == "seen"
        ]
        return response, found

    response, (family,) = served._call(ask())

    assert response.parameters == {"id": "seven", "color": "red", "names": '["a", "b"]'}
    assert "seen" in repr(family)


def test_meta_may_be_taken_by_name_as_seldon_core_gives_it(serve):
    server = serve(
        "class Model:\n    def predict(self, X, names, **kwargs):\n"
        "        return [kwargs['meta']['puid']]\n",
        config_of([("x", "FP32", "-1, 2")], [("y", "STRING", "-1")]),
    )

    assert server.ask({"x": X})["y"].tolist() == [b"kit"]


def test_requests_of_a_batch_are_one_call(serve):
    server = serve(
        "class Model:\n    def predict(self, X):\n        return X + len(X) * 100\n",
        config_of(
            [("x", "FP32", "2")],
            [("y", "FP32", "2")],
            "max_batch_size: 4 dynamic_batching { max_queue_delay_microseconds: 5000000 }",
        ),
    )

    first, second = server.together([{"x": X}, {"x": X + 10}])

    np.testing.assert_array_equal(first["y"], X + 400)
    np.testing.assert_array_equal(second["y"], X + 410)


def test_a_generator_streams(serve):
    server = serve(
        "class Model:\n    def predict(self, X):\n"
        "        for i in range(3):\n            yield X + i\n",
    )

    answers = server.stream({"X": X.astype(float)})

    assert [each["predict"][0, 0] for each in answers if each] == [1, 2, 3]


def test_a_dict_is_named_outputs_or_json(serve):
    server = serve(
        "class Model:\n    def predict(self, X):\n"
        "        return {'a': X[:, 0]} if X[0, 0] > 0 else {'other': 1}\n",
        config_of([("x", "FP32", "-1, 2")], [("a", "STRING", "-1")]),
    )

    assert server.ask({"x": X})["a"].tolist() == [b"1.0", b"3.0"]
    assert server.ask({"x": -X})["a"].tolist() == [b'{"other": 1}']


def test_methods_that_only_the_base_class_of_seldon_core_has_do_not_count(serve):
    server = serve(
        "class SeldonComponent:\n"
        "    def predict(self, X, names, meta=None):\n        raise Exception('not implemented')\n"
        "    transform_input = tags = metrics = class_names = load = predict\n"
        "class Model(SeldonComponent):\n"
        "    def transform_input(self, X, names, meta=None):\n        return X + 1\n",
        config_of(*X_TO_Y),
    )

    np.testing.assert_array_equal(server.ask({"x": X})["y"], X + 1)


def test_a_vector_stays_a_vector(serve):
    server = serve(
        "class Model:\n    def predict(self, X):\n        return [float(X.ndim)]\n",
        config_of([("x", "FP32", "-1")], [("y", "FP32", "-1")]),
    )

    assert server.ask({"x": X[0]})["y"].tolist() == [1]


def test_a_tuple_is_the_outputs_in_order(serve):
    server = serve(
        "class Model:\n    def predict(self, X):\n        return X + 1, X + 2\n",
        config_of([("x", "FP32", "-1, 2")], [("a", "FP32", "-1, 2"), ("b", "FP32", "-1, 2")]),
    )

    answer = server.ask({"x": X})

    np.testing.assert_array_equal(answer["a"], X + 1)
    np.testing.assert_array_equal(answer["b"], X + 2)


@pytest.mark.parametrize(
    "source,text",
    [
        (
            "class A:\n    def predict(self, X): pass\nclass B:\n    def predict(self, X): pass\n",
            "of classes with a predict it has A, B; name the one to serve",
        ),
        (
            "class A:\n    def predict_raw(self, msg): pass\n",
            "has predict_raw alone, which takes messages of Seldon Core",
        ),
        ("class A:\n    def other(self): pass\n", "has no attribute 'TritonPythonModel'"),
    ],
)
def test_an_unsupported_class_is_refused_by_name(serve, source, text):
    with pytest.raises(CoreError) as error:
        serve(source, config_of(*X_TO_Y))

    assert text in error.value.message


def test_an_exception_of_predict_is_an_error_with_its_place(serve):
    server = serve(
        "class Model:\n    def predict(self, X):\n        raise ValueError('too hot')\n",
        config_of(*X_TO_Y),
    )

    with pytest.raises(CoreError) as error:
        server.ask({"x": X})

    assert "ValueError: too hot" in error.value.message
    assert "model.py(3): predict" in error.value.message


def test_a_class_that_ends_its_process_fails_its_request_and_is_started_again(serve):
    server = serve(
        "import os\n"
        "class Model:\n    def predict(self, X):\n"
        "        return X if X[0, 0] > 0 else os._exit(1)\n",
        config_of(*X_TO_Y),
    )

    with pytest.raises(CoreError, match="is not healthy"):
        server.ask({"x": -X})

    np.testing.assert_array_equal(answer_of(server, {"x": X})["y"], X)


def answer_of(server, inputs):
    """Return the answer, asked for until the process has been started again, at most for 30 seconds."""
    end = time.monotonic() + 30
    while True:
        try:
            return server.ask(inputs)
        except CoreError:
            assert time.monotonic() < end, "it was not started again"
            time.sleep(0.01)


def test_a_triton_python_model_is_served_as_such_whatever_else_is_there(serve):
    server = serve(
        "import numpy as np, triton_python_backend_utils as pb_utils\n"
        "class Model:\n    def predict(self, X):\n        return X\n"
        "class TritonPythonModel:\n    def execute(self, requests):\n"
        "        y = np.full((1, 2), 9, np.float32)\n"
        "        return [pb_utils.InferenceResponse([pb_utils.Tensor('y', y)])]\n",
        config_of(*X_TO_Y, MODEL_CLASS="Model"),
    )

    assert server.ask({"x": X})["y"].tolist() == [[9, 9]]
