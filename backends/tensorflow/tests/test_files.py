"""Where the files of a version lie, and errors for damaged ones."""

import os
import random
import shutil

import numpy as np
import pytest
from backend_tensorflow.conformance import save
from backend_tensorflow.framework import tf
from core_testing.leftovers import growth_by_loads

from core.errors import CoreError

SAVED_MODEL = 'platform: "tensorflow_savedmodel"'
X = np.array([[1, 2]], np.float32)


def fill(folder):
    """y = 2x, with a variable."""
    weights = tf.Variable(np.full(2, 2, np.float32))
    module = tf.Module()
    module.weights = weights
    module.function = tf.function(
        lambda x: {"y": x * weights}, input_signature=[tf.TensorSpec([None, 2], tf.float32)]
    )
    tf.saved_model.save(module, str(folder / "model.savedmodel"), signatures=module.function)


@pytest.mark.parametrize("config", ["", SAVED_MODEL])
def test_the_folder_of_a_version_of_tensorflow_serving(serve, config):
    def as_served_there(folder):
        fill(folder)
        for each in (folder / "model.savedmodel").iterdir():
            shutil.move(each, folder / each.name)
        (folder / "model.savedmodel").rmdir()

    model = serve(as_served_there, config)

    assert model(x=X)["y"].tolist() == [[2, 4]]
    assert model.config.platform == "tensorflow_savedmodel"


def test_another_name_of_the_folder(serve):
    def elsewhere(folder):
        fill(folder)
        (folder / "model.savedmodel").rename(folder / "net")

    model = serve(elsewhere, f'{SAVED_MODEL} default_model_filename: "net"')

    assert model(x=X)["y"].tolist() == [[2, 4]]


def test_a_missing_folder_is_an_error_with_what_is_there(serve):
    with pytest.raises(CoreError, match=r"unable to find '.*model.savedmodel'.*net.pb"):
        serve(lambda folder: (folder / "net.pb").touch(), SAVED_MODEL)


def test_a_folder_without_its_file_is_an_error(serve):
    def empty(folder):
        (folder / "model.savedmodel" / "variables").mkdir(parents=True)

    with pytest.raises(CoreError, match=r"unable to find '.*saved_model.pb'.*variables \(a folder"):
        serve(empty)


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: shutil.rmtree(folder / "variables"),
        lambda folder: (folder / "variables" / "variables.index").unlink(),
        lambda folder: (folder / "variables" / "variables.index").write_bytes(b"garbage"),
        lambda folder: next((folder / "variables").glob("*.data-*")).write_bytes(b""),
    ],
)
def test_damaged_variables_fail_the_load(serve, damage):
    def damaged(folder):
        fill(folder)
        damage(folder / "model.savedmodel")

    with pytest.raises(
        CoreError, match=r"cannot load '.*model.savedmodel': TensorFlow cannot load"
    ):
        serve(damaged)


@pytest.mark.parametrize("seed", range(4))
def test_a_truncated_graph_fails_the_load(serve, tmp_path, seed):
    chance = random.Random(seed)
    model = serve(fill)
    file = tmp_path / "models" / "m" / "1" / "model.savedmodel" / "saved_model.pb"
    good = file.read_bytes()
    for _ in range(6):
        file.write_bytes(good[: chance.randrange(len(good) - 1)])
        with pytest.raises(CoreError):
            model.served.load("m")


@pytest.mark.parametrize("seed", range(4))
def test_changed_bytes_end_no_process(serve, tmp_path, seed):
    """A load fails, or the model answers; it may answer something else."""
    chance = random.Random(seed)
    model = serve(fill)
    file = tmp_path / "models" / "m" / "1" / "model.savedmodel" / "saved_model.pb"
    good = file.read_bytes()
    for _ in range(6):
        content = bytearray(good)
        for _ in range(3):
            content[chance.randrange(len(content))] = chance.randrange(256)
        file.write_bytes(content)
        try:
            model.served.load("m")
            model(x=X)
        except CoreError:
            pass


LOADS = int(os.environ.get("LOADS", "200"))  # 1000 take three minutes
MOST_BYTES = 100 << 10  # of growth for each load


def test_memory_is_flat_over_many_loads(serve):
    model = serve(fill)

    most = 2 * LOADS // 5 * MOST_BYTES  # of the loads that are counted
    assert growth_by_loads(model.served, "m", lambda: model(x=X), LOADS) < most


def test_a_file_of_text_at_the_place_of_a_folder_is_an_error(serve):
    with pytest.raises(CoreError, match=r"model.savedmodel"):
        serve(lambda folder: (folder / "model.savedmodel").write_text("x"), SAVED_MODEL)


def test_a_function_that_fails_names_the_model(serve):
    def odd(folder):
        pairs = lambda x: {"y": tf.reshape(x, [tf.shape(x)[0], -1, 2])}  # noqa: E731
        save(folder, pairs, tf.TensorSpec([None, None], tf.float32))

    model = serve(odd)

    with pytest.raises(CoreError, match=r"model 'm': .*multiple of"):
        model(x=np.ones((1, 3), np.float32))
    assert model(x=np.ones((1, 4), np.float32))["y"].shape == (1, 2, 2)
