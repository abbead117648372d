"""A Keras model of text, from training to answers: python examples/tensorflow/reviews.py [REPOSITORY]

REPOSITORY   keeps the model, for core-serve; without it, nothing is kept

The model takes sentences: its table of words is in the graph. Nobody describes it in config.pbtxt. Needs
backend-tensorflow[cpu].
"""

import os
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf

import core

GOOD = ["a wonderful film", "I loved every minute", "great actors", "what a lovely story"]
BAD = ["a dull film", "I hated every minute", "poor actors", "what a boring story"]


def trained():
    """Return a model that says how good a review is, from 0 to 1."""
    tf.keras.utils.set_random_seed(1)
    layers = tf.keras.layers
    words = layers.TextVectorization(output_mode="multi_hot")
    words.adapt(GOOD + BAD)
    review = tf.keras.Input((1,), dtype="string", name="review")
    model = tf.keras.Model(review, {"good": layers.Dense(1, "sigmoid")(words(review))})
    model.compile(tf.keras.optimizers.Adam(0.1), "binary_crossentropy")
    x = tf.constant(GOOD + BAD)[:, None]
    model.fit(x, np.repeat([1.0, 0.0], [len(GOOD), len(BAD)]), epochs=40, verbose=0)
    return model


def main(repository):
    trained().export(repository / "reviews" / "1" / "model.savedmodel", verbose=False)
    with core.Server(model_repository=str(repository)) as server:
        reviews = [["a great story"], ["I hated the actors"]]
        answer = server.infer("reviews", {"review": np.array(reviews, object)})
    for (review,), (good,) in zip(reviews, answer["good"], strict=True):
        print(f"{review}: {'good' if good > 0.5 else 'bad'}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(Path(folder))
