"""GraphDefs of TensorFlow 1: names, completion, operators that run at the load."""

import gc
import json
import time

import numpy as np
import pytest
from backend_tensorflow.framework import tf, v1

from core.errors import CoreError

CONFIG = """backend: "tensorflow" max_batch_size: 4
input [ { name: "x" data_type: TYPE_FP32 dims: [ 2 ] } ]
output [ { name: "scores" data_type: TYPE_FP32 dims: [ 3 ] } ]"""


def graph_of(build, frozen=()):
    """Return a function that writes model.graphdef of the operators that `build` makes.

    frozen   names of outputs; with them, variables become constants
    """

    def fill(folder):
        with v1.Graph().as_default() as graph, v1.Session() as session:
            build()
            message = graph.as_graph_def()
            if frozen:
                session.run(v1.global_variables_initializer())
                message = v1.graph_util.convert_variables_to_constants(session, message, frozen)
        (folder / "model.graphdef").write_bytes(message.SerializeToString())

    return fill


def classifier():
    x = v1.placeholder(tf.float32, [None, 2], "x")
    logits = tf.matmul(x, v1.get_variable("w", [2, 3], initializer=v1.ones_initializer()))
    tf.nn.softmax(logits, name="scores")
    tf.argmax(logits, 1, name="best")


def test_a_frozen_graph_is_completed(serve):
    model = serve(graph_of(classifier, ["scores", "best"]))

    answer = model(x=np.ones((2, 2), np.float32))

    config = model.config
    assert (config.platform, config.max_batch_size) == ("tensorflow_graphdef", 4)
    assert [(io.name, list(io.dims)) for io in config.input] == [("x", [2])]
    assert [(io.name, list(io.dims)) for io in config.output] == [("best", [1]), ("scores", [3])]
    np.testing.assert_allclose(answer["scores"], np.full((2, 3), 1 / 3), rtol=1e-6)
    assert answer["best"].shape == (2, 1)


def test_a_graph_that_a_function_of_version_2_was_frozen_to(serve):
    from tensorflow.python.framework.convert_to_constants import (
        convert_variables_to_constants_v2,
    )

    def fill(folder):
        weights = tf.Variable(np.full((2, 1), 3, np.float32))
        spec = tf.TensorSpec([None, 2], tf.float32, "x")
        function = tf.function(lambda x: x @ weights).get_concrete_function(spec)
        message = convert_variables_to_constants_v2(function).graph.as_graph_def()
        (folder / "model.graphdef").write_bytes(message.SerializeToString())

    model = serve(fill)

    assert model(x=np.ones((1, 2), np.float32)) == {"Identity": np.array([[6]], np.float32)}


def test_a_described_graph(serve):
    model = serve(graph_of(classifier, ["scores"]), CONFIG)

    assert model(x=np.ones((3, 2), np.float32))["scores"].shape == (3, 3)


@pytest.mark.parametrize("name", ["MatMul", "MatMul:0"])
def test_any_tensor_of_the_graph_can_be_an_output(serve, name):
    model = serve(
        graph_of(classifier, ["scores"]), f'backend: "tensorflow" output {{ name: "{name}" }}'
    )

    assert model(x=np.ones((1, 2), np.float32))[name].tolist() == [[2, 2, 2]]


def test_any_tensor_of_the_graph_can_be_an_input(serve):
    config = 'backend: "tensorflow" input { name: "MatMul" } output { name: "best" }'
    model = serve(graph_of(classifier, ["best"]), config)

    assert model(MatMul=np.array([[1, 9, 3]], np.float32))["best"].tolist() == [[1]]


def test_an_input_may_have_the_name_of_its_tensor(serve):
    config = 'backend: "tensorflow" input { name: "x:0" } output { name: "scores" }'
    model = serve(graph_of(classifier, ["scores"]), config)

    assert [io.name for io in model.config.input] == ["x:0"]
    assert model(**{"x:0": np.ones((2, 2), np.float32)})["scores"].shape == (2, 3)


def test_the_graph_ends_with_the_model(serve):
    def graphs():
        return sum(isinstance(each, v1.Graph) for each in gc.get_objects())

    gc.collect()
    before = graphs()
    gc.disable()
    try:
        fill = graph_of(classifier, ["scores"])
        model = serve(fill, 'backend: "tensorflow" output { name: "scores" }')
        model.served.unload("m")
        for _ in range(100):
            if graphs() <= before:
                break
            time.sleep(0.1)
        assert graphs() <= before
    finally:
        gc.enable()


def test_placeholders_that_no_output_needs_are_no_inputs(serve):
    def build():
        x = v1.placeholder(tf.float32, [None], "x")
        label = v1.placeholder(tf.float32, [None], "label")
        tf.add(x, 1, name="y")
        tf.subtract(x, label, name="loss")

    model = serve(graph_of(build), 'backend: "tensorflow" output { name: "y" }')

    assert [io.name for io in model.config.input] == ["x"]
    assert model(x=np.array([1, 2], np.float32).reshape(2, 1))["y"].tolist() == [[2], [3]]


def test_several_results_of_an_operator(serve):
    def build():
        x = v1.placeholder(tf.float32, [None, 4], "x")
        tf.split(x, 2, axis=1, name="half")

    model = serve(graph_of(build))

    answer = model(x=np.array([[1, 2, 3, 4]], np.float32))
    assert {name: array.tolist() for name, array in answer.items()} == {
        "half": [[1, 2]],
        "half:1": [[3, 4]],
    }


def counted():
    start = v1.placeholder_with_default(tf.constant([5.0]), [1], "start")
    variable = v1.get_variable("v", initializer=[1.0], use_resource=True)
    v1.variables_initializer([variable], "init")
    tf.group(variable.assign_add([2.0]), name="more")
    x = v1.placeholder(tf.float32, [1], "x")
    tf.add(x, variable, name="y")
    tf.identity(start, name="unused")


@pytest.mark.parametrize("named", [False, True])
def test_operators_run_once_at_the_load_in_their_order(serve, named):
    file = "first.json" if named else "init_ops.json"

    def fill(folder):
        graph_of(counted)(folder)
        (folder / file).write_text(json.dumps({"init_ops": ["init", "more", "more"]}))

    more = f'parameters {{ key: "TF_INIT_OPS_FILE" value {{ string_value: "{file}" }} }}'
    model = serve(fill, f'backend: "tensorflow" output {{ name: "y" }} {more if named else ""}')

    x = np.array([10], np.float32)
    assert [model(x=x)["y"].tolist() for _ in range(2)] == [[15], [15]]


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ('{"init_ops": ["unit"]}', "the operator 'unit' of '.*' failed: .*unit"),
        ('{"init_ops": "init"}', "expected a list of names"),
        ("init", "expected an object with the key init_ops"),
        (None, "No such file or directory"),
    ],
)
def test_a_wrong_file_of_operators_is_an_error(serve, content, error):
    def fill(folder):
        graph_of(counted)(folder)
        if content is not None:
            (folder / "ops.json").write_text(content)

    more = 'parameters { key: "TF_INIT_OPS_FILE" value { string_value: "ops.json" } }'
    with pytest.raises(CoreError, match=error):
        serve(fill, f'backend: "tensorflow" output {{ name: "y" }} {more}')


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('output { name: "z" }', "the graph has no tensor 'z'; it has: x, .*; change the name"),
        (
            'input { name: "x" data_type: TYPE_INT32 dims: [ 2 ] }',
            "expects datatype TYPE_INT32 for 'x', model provides TYPE_FP32",
        ),
        (
            'input { name: "x" data_type: TYPE_FP32 dims: [ 5 ] } max_batch_size: 2',
            r"tensor 'x': the model has dims \[2\], the configuration \[5\]",
        ),
    ],
)
def test_what_contradicts_the_graph_is_an_error(serve, text, error):
    with pytest.raises(CoreError, match=error):
        serve(graph_of(classifier, ["scores"]), f'backend: "tensorflow" {text}')


@pytest.mark.parametrize("content", [b"", b"garbage" * 50])
def test_a_file_of_another_format_is_an_error(serve, content):
    with pytest.raises(
        CoreError, match=r"cannot load '.*model.graphdef': .* copy or export it again"
    ):
        serve(lambda folder: (folder / "model.graphdef").write_bytes(content))


def test_an_unknown_operator_is_an_error_with_its_name(serve):
    def fill(folder):
        message = v1.GraphDef()
        node = message.node.add(name="x", op="OperatorOfMine")
        node.attr["T"].type = 1
        (folder / "model.graphdef").write_bytes(message.SerializeToString())

    with pytest.raises(CoreError, match=r"cannot load '.*model.graphdef'.*OperatorOfMine"):
        serve(fill)
