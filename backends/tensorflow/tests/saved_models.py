"""SavedModels of the usual kinds: each function writes one, and returns a request for it.

Keras 3 and tf.Module write their own. Those of TensorFlow 1, of its estimators and of TensorFlow Hub are
written by hand in the same form, with tf.compat.v1 of TensorFlow 2: none was written by these programs.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from backend_tensorflow.framework import tf, v1

RNG = np.random.default_rng(7)
MAKERS: dict[str, Callable] = {}


@dataclass
class Request:
    """Inputs for a signature of a SavedModel.

    key    of the signature
    tags   of the graph
    more   text for config.pbtxt
    """

    inputs: dict[str, np.ndarray]
    key: str = "serving_default"
    tags: tuple[str, ...] = ("serve",)
    more: str = ""


def maker(function):
    MAKERS[function.__name__] = function
    return function


def floats(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def texts(*words):
    return np.array([word.encode() for word in words], object)


def module(folder, **functions):
    """Write a module of functions with their input signatures; return it."""
    made = tf.Module()
    signatures = {}
    for key, (function, *specs) in functions.items():
        signatures[key] = tf.function(function, input_signature=specs)
    made.functions = list(signatures.values())
    tf.saved_model.save(made, str(folder), signatures=signatures)
    return made


def spec(dtype, *shape):
    return tf.TensorSpec(list(shape), dtype)


# Keras 3 ---------------------------------------------------------------------


@maker
def keras_dense(folder):
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.Input((4,), name="x"), layers.Dense(3, "softmax")])
    model.export(folder, verbose=False)
    return Request({"x": floats(3, 4)})


@maker
def keras_two_inputs_and_outputs(folder):
    layers = tf.keras.layers
    a, b = layers.Input((4,), name="a"), layers.Input((2,), name="b")
    both = layers.Concatenate()([a, b])
    outputs = {"total": layers.Dense(1)(both), "copy": layers.Dense(2, "relu")(both)}
    tf.keras.Model({"a": a, "b": b}, outputs).export(folder, verbose=False)
    return Request({"a": floats(3, 4), "b": floats(3, 2)})


@maker
def keras_convolution(folder):
    layers = tf.keras.layers
    image = layers.Input((8, 8, 3), name="image")
    x = layers.BatchNormalization()(layers.Conv2D(4, 3, padding="same", activation="relu")(image))
    x = layers.GlobalAveragePooling2D()(layers.SeparableConv2D(6, 3)(x))
    tf.keras.Model(image, layers.Dense(5, "softmax")(x)).export(folder, verbose=False)
    return Request({"image": floats(2, 8, 8, 3)})


@maker
def keras_images_of_any_size(folder):
    layers = tf.keras.layers
    image = layers.Input((None, None, 1), name="image")
    tf.keras.Model(image, layers.Conv2D(2, 3)(image)).export(folder, verbose=False)
    return Request({"image": floats(2, 5, 7, 1)})


@maker
def keras_lstm(folder):
    layers = tf.keras.layers
    steps = layers.Input((None, 3), name="steps")
    tf.keras.Model(steps, layers.Bidirectional(layers.LSTM(4))(steps)).export(folder, verbose=False)
    return Request({"steps": floats(2, 5, 3)})


@maker
def keras_embedding(folder):
    layers = tf.keras.layers
    words = layers.Input((None,), dtype="int32", name="words")
    x = layers.GlobalMaxPooling1D()(layers.Embedding(10, 4)(words))
    tf.keras.Model(words, layers.Dense(2)(x)).export(folder, verbose=False)
    return Request({"words": np.array([[1, 2, 3], [9, 0, 0]], np.int32)})


@maker
def keras_attention(folder):
    layers = tf.keras.layers
    x = layers.Input((6, 8), name="x")
    y = layers.LayerNormalization()(layers.MultiHeadAttention(2, 4)(x, x) + x)
    tf.keras.Model(x, y).export(folder, verbose=False)
    return Request({"x": floats(2, 6, 8)})


@maker
def keras_text_vectors(folder):
    """A table of words in the graph."""
    layers = tf.keras.layers
    vectors = layers.TextVectorization(output_sequence_length=4)
    vectors.adapt(["a red fox", "a blue bird"])
    text = layers.Input((1,), dtype="string", name="text")
    tf.keras.Model(text, vectors(text)).export(folder, verbose=False)
    return Request({"text": texts("a bird", "the fox, red").reshape(2, 1)})


@maker
def keras_categories(folder):
    layers = tf.keras.layers
    color = layers.Input((1,), dtype="string", name="color")
    found = layers.StringLookup(vocabulary=["red", "blue"], output_mode="one_hot")(color)
    tf.keras.Model(color, found).export(folder, verbose=False)
    return Request({"color": texts("blue", "green").reshape(2, 1)})


@maker
def keras_normalized_numbers(folder):
    layers = tf.keras.layers
    normalized = layers.Normalization()
    normalized.adapt(floats(20, 3))
    x = layers.Input((3,), name="x")
    tf.keras.Model(x, layers.Dense(1)(normalized(x))).export(folder, verbose=False)
    return Request({"x": floats(4, 3)})


@maker
def keras_own_class(folder):
    class Twice(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = tf.keras.layers.Dense(3)

        def call(self, x):
            return self.dense(self.dense(x))

    model = Twice()
    model(floats(1, 3))
    rows = tf.TensorSpec([None, 3], "float32", "x")
    model.export(folder, input_signature=[rows], verbose=False)
    return Request({"x": floats(2, 3)})


@maker
def keras_several_endpoints(folder):
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.Input((4,)), layers.Dense(3)])
    archive = tf.keras.export.ExportArchive()
    archive.track(model)
    archive.add_endpoint("serve", model.call, [spec("float32", None, 4)])
    archive.add_endpoint("lengths", lambda x: tf.norm(model(x), axis=1), [spec("float32", None, 4)])
    archive.write_out(folder, verbose=False)
    return Request({"x": floats(2, 4)}, "lengths")


@maker
def keras_half_precision(folder):
    layers = tf.keras.layers
    x = layers.Input((4,), dtype="float16", name="x")
    tf.keras.Model(x, layers.Dense(3, dtype="float16")(x)).export(folder, verbose=False)
    return Request({"x": floats(2, 4).astype(np.float16)})


# Modules -----------------------------------------------------------------------


@maker
def module_with_variables(folder):
    weights = tf.Variable(floats(3, 2))
    made = tf.Module()
    made.weights = weights
    made.function = tf.function(
        lambda x: {"y": x @ weights}, input_signature=[spec("float32", None, 3)]
    )
    tf.saved_model.save(made, str(folder), signatures=made.function)
    return Request({"x": floats(4, 3)})


@maker
def module_with_several_signatures(folder):
    module(
        folder,
        serving_default=(lambda x: {"y": x + 1}, spec("float32", None)),
        halved=(lambda x: {"y": x / 2, "rest": x % 2}, spec("float32", None, 2)),
    )
    return Request({"x": floats(3, 2)}, "halved")


@maker
def module_with_a_table_of_a_file(folder):
    """The vocabulary is an asset."""
    vocabulary = folder.parent / "words.txt"
    vocabulary.write_text("fox\nbird\n")
    made = tf.Module()
    lines = tf.lookup.TextFileInitializer(
        str(vocabulary),
        tf.string,
        tf.lookup.TextFileIndex.WHOLE_LINE,
        tf.int64,
        tf.lookup.TextFileIndex.LINE_NUMBER,
    )
    made.table = tf.lookup.StaticVocabularyTable(lines, num_oov_buckets=2)
    made.function = tf.function(
        lambda word: {"id": made.table.lookup(word)}, input_signature=[spec("string", None)]
    )
    tf.saved_model.save(made, str(folder), signatures=made.function)
    vocabulary.unlink()
    return Request({"word": texts("bird", "fox", "wolf")})


@maker
def module_with_a_table_that_changes(folder):
    made = tf.Module()
    made.table = tf.lookup.experimental.DenseHashTable(tf.int64, tf.float32, -1.0, -1, -2)

    @tf.function(input_signature=[spec("int64", None), spec("float32", None)])
    def put(key, value):
        made.table.insert(key, value)
        return {"value": made.table.lookup(key)}

    made.put = put
    tf.saved_model.save(made, str(folder), signatures=put)
    return Request({"key": np.array([4, 9]), "value": floats(2)})


@maker
def module_with_a_ragged_input(folder):
    rows = tf.RaggedTensorSpec([None, None], tf.float32)
    module(folder, serving_default=(lambda rows: {"sum": tf.reduce_sum(rows, axis=1)}, rows))
    return Request({"rows": floats(5), "rows_1": np.array([0, 2, 2, 5])})


@maker
def module_with_a_ragged_output(folder):
    module(
        folder,
        serving_default=(lambda text: {"words": tf.strings.split(text)}, spec("string", None)),
    )
    return Request({"text": texts("a red fox", "", "two birds")})


@maker
def module_with_a_sparse_output(folder):
    module(
        folder,
        serving_default=(lambda x: {"found": tf.sparse.from_dense(x)}, spec("float32", 2, 3)),
    )
    x = np.array([[0, 2, 0], [3, 0, 0]], np.float32)
    return Request({"x": x})


@maker
def module_of_text(folder):
    def function(text):
        return {
            "upper": tf.strings.upper(text, encoding="utf-8"),
            "length": tf.strings.length(text),
            "bytes": tf.strings.join([text, b"\xff\0"]),
        }

    module(folder, serving_default=(function, spec("string", None, 2)))
    return Request({"text": texts("é", "a\0b", "", "xyz").reshape(2, 2)})


@maker
def module_of_scalars(folder):
    module(folder, serving_default=(lambda a, b: {"sum": a + b}, spec("float64"), spec("float64")))
    return Request({"a": np.array([2.5]), "b": np.array([4.0])})


@maker
def module_of_fixed_shapes(folder):
    module(folder, serving_default=(lambda x: {"y": tf.transpose(x)}, spec("int32", 2, 3)))
    return Request({"x": np.arange(6, dtype=np.int32).reshape(2, 3)})


@maker
def module_of_a_loop(folder):
    def function(x, times):
        for _ in tf.range(times[0]):
            x = tf.where(x > 10, x - 10, x * 2)
        return {"y": x}

    module(folder, serving_default=(function, spec("float32", 3), spec("int32", 1)))
    return Request({"x": np.array([1, 3, 9], np.float32), "times": np.array([4], np.int32)})


@maker
def module_of_many_datatypes(folder):
    names = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
    names += ("float16", "float32", "float64")
    specs = [tf.TensorSpec([None, 2], each, f"in_{each}") for each in names]

    def function(*given):
        return {f"out_{name}": tf.reverse(x, [1]) for name, x in zip(names, given, strict=True)}

    module(folder, serving_default=(function, *specs))
    return Request({f"in_{each}": np.array([[0, 1], [1, 1]], each) for each in names})


@maker
def module_of_pictures(folder):
    """Files of pictures in text, as clients of TensorFlow Serving send them."""

    def function(png):
        decode = lambda each: tf.cast(tf.io.decode_png(each, 3), tf.float32)  # noqa: E731
        pixels = tf.map_fn(decode, png, fn_output_signature=spec("float32", None, None, 3))
        return {"mean": tf.reduce_mean(pixels, axis=(1, 2))}

    module(folder, serving_default=(function, spec("string", None)))
    pictures = [tf.io.encode_png(RNG.integers(0, 255, (4, 5, 3)).astype(np.uint8)) for _ in "ab"]
    return Request({"png": np.array([each.numpy() for each in pictures], object)})


@maker
def module_of_examples(folder):
    """The signature parses tf.Example."""
    features = {
        "age": tf.io.FixedLenFeature([1], tf.float32),
        "tags": tf.io.VarLenFeature(tf.string),
    }

    def function(examples):
        found = tf.io.parse_example(examples, features)
        count = tf.math.bincount(
            tf.cast(found["tags"].indices[:, 0], tf.int32),
            minlength=tf.size(examples),
            maxlength=tf.size(examples),
        )
        return {"age": found["age"] * 2, "tags": count}

    module(folder, serving_default=(function, spec("string", None)))
    return Request({"examples": examples_of([3.0, 40.0], [["x", "y"], []])})


def examples_of(ages, tags):
    """Return serialized tf.Example messages."""
    found = []
    for age, words in zip(ages, tags, strict=True):
        example = tf.train.Example()
        example.features.feature["age"].float_list.value.append(age)
        example.features.feature["tags"].bytes_list.value.extend(word.encode() for word in words)
        found.append(example.SerializeToString())
    return np.array(found, object)


# TensorFlow 1 ----------------------------------------------------------------------


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


# TensorFlow Hub ------------------------------------------------------------------------


@maker
def hub_reusable_model(folder):
    """What Hub asks of TensorFlow 2: an object that can be called, with its variables."""

    class Reusable(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable(floats(3, 2))
            self.variables_of_hub = [self.w]
            self.regularization_losses = []

        @tf.function(input_signature=[spec("float32", None, 3)])
        def __call__(self, x):
            return x @ self.w

    made = Reusable()
    tf.saved_model.save(made, str(folder), signatures=made.__call__)
    return Request({"x": floats(2, 3)})


@maker
def hub_module_of_version_1(folder):
    """A graph without tags, and the signature "default"."""

    def fill():
        x = v1.placeholder(tf.string, [None], "sentences")
        return {"default": ({"text": x}, {"default": tf.strings.length(x)}, "")}

    graph_of_version_1(folder, fill, tags=())
    (folder / "tfhub_module.pb").write_bytes(b"\x08\x03")
    return Request({"text": texts("a fox", "")}, "default", tags=())


# TensorFlow Serving ----------------------------------------------------------------------


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
