"""SavedModels as TensorFlow 1, its estimators, TensorFlow Hub and TensorFlow Serving have them."""

import numpy as np
from backend_tensorflow.framework import tf, v1

from saved_models.makers import Request, floats, maker, texts
from saved_models.modules import examples_of


def graph_of_version_1(folder, fill, tags=("serve",), **more):
    """Write a graph that `fill` makes; it returns key → (inputs, outputs, method)."""
    with v1.Graph().as_default(), v1.Session() as session:
        signatures = {
            key: v1.saved_model.build_signature_def(
                {name: v1.saved_model.build_tensor_info(each) for name, each in inputs.items()},
                {name: v1.saved_model.build_tensor_info(each) for name, each in outputs.items()},
                method,
            )
            for key, (inputs, outputs, method) in fill().items()
        }
        session.run([v1.global_variables_initializer(), v1.tables_initializer()])
        builder = v1.saved_model.Builder(str(folder))
        builder.add_meta_graph_and_variables(session, list(tags), signatures, **more)
        builder.save()


PREDICT = "tensorflow/serving/predict"


@maker
def version_1_simple_save(folder):
    with v1.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 2], "x")
        y = tf.matmul(x, v1.get_variable("w", [2, 3], use_resource=True))
        session.run(v1.global_variables_initializer())
        v1.saved_model.simple_save(session, str(folder), {"x": x}, {"y": y})
    return Request({"x": floats(3, 2)})


@maker
def version_1_reference_variables(folder):
    def fill():
        x = v1.placeholder(tf.float32, [None, 2], "x")
        w = v1.get_variable("w", [2, 2], use_resource=False)
        return {"serving_default": ({"x": x}, {"y": tf.matmul(x, w)}, PREDICT)}

    graph_of_version_1(folder, fill)
    return Request({"x": floats(3, 2)})


@maker
def version_1_estimator(folder):
    """A classifier as estimators export it: it parses tf.Example, and has three signatures."""

    def fill():
        examples = v1.placeholder(tf.string, [None], "input_example_tensor")
        parsed = v1.parse_example(examples, {"age": v1.FixedLenFeature([1], tf.float32)})
        logits = tf.matmul(parsed["age"], v1.get_variable("w", [1, 3], use_resource=False))
        scores = tf.nn.softmax(logits)
        words = tf.tile([["no", "maybe", "yes"]], [tf.shape(examples)[0], 1])
        classify = "tensorflow/serving/classify"
        return {
            "serving_default": (
                {"inputs": examples},
                {"classes": words, "scores": scores},
                classify,
            ),
            "predict": (
                {"examples": examples},
                {"probabilities": scores, "class_ids": tf.argmax(scores, 1)[:, None]},
                PREDICT,
            ),
            "regression": (
                {"inputs": examples},
                {"outputs": logits[:, :1]},
                "tensorflow/serving/regress",
            ),
        }

    graph_of_version_1(folder, fill)
    return Request({"inputs": examples_of([3.0, 40.0], [[], []])})


@maker
def version_1_table(folder):
    """The table is filled by an operator of the collection that TensorFlow 1 had for it."""
    with v1.Graph().as_default(), v1.Session() as session:
        word = v1.placeholder(tf.string, [None], "word")
        keys = v1.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([5, 6], tf.int64))
        found = v1.lookup.StaticHashTable(keys, -1).lookup(word)
        signature = v1.saved_model.build_signature_def(
            {"word": v1.saved_model.build_tensor_info(word)},
            {"id": v1.saved_model.build_tensor_info(found)},
            PREDICT,
        )
        builder = v1.saved_model.Builder(str(folder))
        builder.add_meta_graph_and_variables(
            session, ["serve"], {"serving_default": signature}, main_op=v1.tables_initializer()
        )
        builder.save()
    return Request({"word": texts("b", "c")})


@maker
def version_1_two_graphs(folder):
    """One graph for serving, one for training, with the same variables."""
    with v1.Graph().as_default(), v1.Session() as session:
        builder = v1.saved_model.Builder(str(folder))
        x = v1.placeholder(tf.float32, [None], "x")
        w = v1.get_variable("w", [], initializer=v1.constant_initializer(3), use_resource=True)
        session.run(v1.global_variables_initializer())
        for tags, y in ((["serve"], x * w), (["train", "gpu"], x + w)):
            signature = v1.saved_model.build_signature_def(
                {"x": v1.saved_model.build_tensor_info(x)},
                {"y": v1.saved_model.build_tensor_info(y)},
                PREDICT,
            )
            if tags == ["serve"]:
                builder.add_meta_graph_and_variables(session, tags, {"serving_default": signature})
            else:
                builder.add_meta_graph(tags, {"serving_default": signature})
        builder.save()
    tags = 'parameters { key: "TF_GRAPH_TAG" value { string_value: "train,gpu" } }'
    return Request({"x": floats(3)}, tags=("train", "gpu"), more=tags)


@maker
def version_1_any_shape(folder):
    """The model of TensorFlow Serving's documentation."""

    def fill():
        x = v1.placeholder(tf.float32, name="x")
        half = v1.get_variable("a", initializer=0.5, use_resource=True)
        return {"serving_default": ({"x": x}, {"y": x * half + 2.0}, PREDICT)}

    graph_of_version_1(folder, fill)
    return Request({"x": np.array([1, 2, 5], np.float32)})


@maker
def version_1_sparse_input(folder):
    def fill():
        x = v1.sparse_placeholder(tf.float32, [None, 4], "x")
        return {"serving_default": ({"x": x}, {"y": v1.sparse_reduce_sum(x, 1)}, PREDICT)}

    graph_of_version_1(folder, fill)
    indices, shape = np.array([[0, 1], [1, 3]]), np.array([2, 4])
    values = np.array([7, 8], np.float32)
    given = {"x_indices": indices, "x_values": values, "x_dense_shape": shape}
    return Request(given)


@maker
def hub_module_of_version_1(folder):
    """A graph without tags, and the signature "default"."""

    def fill():
        x = v1.placeholder(tf.string, [None], "sentences")
        return {"default": ({"text": x}, {"default": tf.strings.length(x)}, "")}

    graph_of_version_1(folder, fill, tags=())
    (folder / "tfhub_module.pb").write_bytes(b"\x08\x03")
    return Request({"text": texts("a fox", "")}, "default", tags=())


def half_plus(folder, number, regression, classification):
    """A model of TensorFlow Serving's documentation, y = x / 2 + number, with signatures for all methods."""

    def fill():
        examples = v1.placeholder(tf.string, [None], "tf_example")
        one = v1.FixedLenFeature([1], tf.float32)
        x = tf.identity(v1.parse_example(examples, {"x": one})["x"], name="x")
        half = v1.get_variable("a", initializer=0.5, use_resource=True)
        y = tf.identity(x * half + number, name="y")
        classify, regress = "tensorflow/serving/classify", "tensorflow/serving/regress"
        return {
            "serving_default": ({"x": x}, {"y": y}, PREDICT),
            regression: ({"inputs": examples}, {"outputs": y}, regress),
            classification: ({"inputs": examples}, {"scores": y}, classify),
        }

    graph_of_version_1(folder, fill)
    return Request({"x": np.array([[1], [2], [5]], np.float32)})


@maker
def half_plus_two(folder):
    return half_plus(folder, 2.0, "regress_x_to_y", "classify_x_to_y")


@maker
def half_plus_three(folder):
    """The names of its signatures are those of the methods."""
    return half_plus(folder, 3.0, "tensorflow/serving/regress", "tensorflow/serving/classify")
