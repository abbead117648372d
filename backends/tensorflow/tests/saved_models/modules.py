"""SavedModels that tf.Module writes, and an object as TensorFlow Hub asks for it."""

import numpy as np
from backend_tensorflow.framework import tf

from saved_models.makers import RNG, Request, floats, maker, spec, texts


def module(folder, **functions):
    """Write a module of functions with their input signatures; return it."""
    made = tf.Module()
    signatures = {}
    for key, (function, *specs) in functions.items():
        signatures[key] = tf.function(function, input_signature=specs)
    made.functions = list(signatures.values())
    tf.saved_model.save(made, str(folder), signatures=signatures)
    return made


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
