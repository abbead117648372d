"""Networks of Flax and of Keras give what they give in their library, for batches of several sizes."""

import subprocess
import sys

import jax
import numpy as np
import pytest

PICTURES = np.random.default_rng(5).normal(size=(3, 8, 8, 2)).astype(np.float32)
SHAPE = ("float32", "rows, 8, 8, 2")
CONFIG = 'backend: "jax" max_batch_size: 4'

# In a process of its own: Keras has one backend in a process, and other tests take TensorFlow's.
KERAS = """
import sys
from pathlib import Path
import keras
import numpy as np
from backend_jax.conformance import save

network = keras.Sequential([
    keras.Input((8, 8, 2)),
    keras.layers.Conv2D(4, 3, activation="relu"),
    keras.layers.BatchNormalization(),
    keras.layers.MaxPooling2D(),
    keras.layers.Flatten(),
    keras.layers.Dropout(0.5),
    keras.layers.Dense(3, activation="softmax"),
])
trained = [each.value for each in network.trainable_variables]
others = [each.value for each in network.non_trainable_variables]


def predict(*, pictures):
    scores, _ = network.stateless_call(trained, others, pictures, training=False)
    return {"scores": scores}


folder = Path(sys.argv[1])
assert keras.backend.backend() == "jax"
save(folder, predict, pictures=("float32", "rows, 8, 8, 2"))
np.save(folder / "expected.npy", np.asarray(network(np.load(folder / "pictures.npy"))))
"""


def check(model, expected):
    for rows in (3, 1):
        found = model(pictures=PICTURES[:rows])["scores"]
        np.testing.assert_allclose(found, expected[:rows], rtol=1e-5, atol=1e-6)


def test_a_module_of_flax_nnx(serve):
    nnx = pytest.importorskip("flax.nnx", reason="flax is not installed")

    class Network(nnx.Module):
        def __init__(self, rngs):
            self.filters = nnx.Conv(2, 4, (3, 3), rngs=rngs)
            self.norm = nnx.BatchNorm(4, rngs=rngs)
            self.drop = nnx.Dropout(0.5, rngs=rngs)
            self.scores = nnx.Linear(4, 3, rngs=rngs)

        def __call__(self, pictures):
            found = self.drop(nnx.relu(self.norm(self.filters(pictures))))
            return self.scores(found.mean((1, 2)))

    network = Network(nnx.Rngs(7))
    network(PICTURES)  # moves the averages of the norm
    network.eval()
    parts = nnx.split(network)

    def predict(*, pictures):
        return {"scores": nnx.merge(*parts)(pictures)}

    check(serve(predict, CONFIG, pictures=SHAPE), np.asarray(network(PICTURES)))


def test_a_module_of_flax_linen(serve):
    linen = pytest.importorskip("flax.linen", reason="flax is not installed")

    class Network(linen.Module):
        @linen.compact
        def __call__(self, pictures):
            found = linen.relu(linen.Conv(4, (3, 3))(pictures))
            found = linen.LayerNorm()(linen.avg_pool(found, (2, 2), (2, 2)))
            return linen.Dense(3)(found.reshape((found.shape[0], -1)))

    network = Network()
    weights = network.init(jax.random.key(7), PICTURES)

    def predict(*, pictures):
        return {"scores": network.apply(weights, pictures)}

    check(serve(predict, CONFIG, pictures=SHAPE), np.asarray(network.apply(weights, PICTURES)))


def test_a_network_of_keras_with_the_backend_jax(serve, tmp_path, monkeypatch):
    pytest.importorskip("keras", reason="keras is not installed")
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    np.save(tmp_path / "pictures.npy", PICTURES)
    done = subprocess.run(
        [sys.executable, "-c", KERAS, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr

    model = serve((tmp_path / "model.jax").read_bytes(), CONFIG)

    check(model, np.load(tmp_path / "expected.npy"))
