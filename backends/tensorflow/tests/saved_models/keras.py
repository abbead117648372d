"""SavedModels that Keras 3 writes."""

import numpy as np
from backend_tensorflow.framework import tf

from saved_models.makers import Request, floats, maker, spec, texts


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
