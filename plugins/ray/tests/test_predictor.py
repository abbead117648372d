"""A Predictor is a function of batches that can be sent to other processes. These tests need no Ray."""

import pickle
from pathlib import Path

import numpy as np
import pytest
from core_ray import Predictor

import core

MODELS = Path(__file__).parents[3] / "examples" / "models"
ROWS = 150  # more than the model's max_batch_size of 64


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """A repository with `digits`, which batches, and the Python models `twice` and `greet`."""
    pytest.importorskip("backend_onnx")
    folder = tmp_path_factory.mktemp("models")
    (folder / "digits").symlink_to(MODELS / "digits")
    return folder


@pytest.fixture
def digits(repository):
    return Predictor("digits", model_repository=repository)


def pixels(rows):
    return np.random.default_rng(0).random((rows, 8, 8), np.float32)


def expected(repository, array):
    with core.Server(model_repository=repository) as server:
        return np.concatenate(
            [
                server.infer("digits", {"pixels": array[at : at + 64]})["probabilities"]
                for at in range(0, len(array), 64)
            ]
        )


def test_the_outputs_are_columns_beside_those_of_the_batch(repository, digits):
    batch = {"pixels": pixels(ROWS), "name": np.arange(ROWS)}

    found = digits(batch)

    assert list(found) == ["pixels", "name", "probabilities"]
    np.testing.assert_array_equal(found["name"], np.arange(ROWS))
    np.testing.assert_allclose(
        found["probabilities"], expected(repository, batch["pixels"]), rtol=1e-5
    )


def test_it_can_be_pickled_and_works_after_that(digits):
    found = pickle.loads(pickle.dumps(digits))({"pixels": pixels(2)})

    assert found["probabilities"].shape == (2, 10)


def test_columns_have_names_of_their_own(repository):
    predictor = Predictor(
        "digits",
        inputs={"pixels": "image"},
        outputs={"probabilities": "score"},
        keep=False,
        model_repository=repository,
    )

    assert list(predictor({"image": pixels(1), "pixels": np.zeros(1)})) == ["score"]


def test_numbers_are_converted_within_their_kind(repository, digits):
    array = pixels(3)

    found = digits({"pixels": array.astype(np.float64)})

    np.testing.assert_allclose(found["probabilities"], expected(repository, array), rtol=1e-5)


def test_rows_that_are_arrays_become_one_tensor(digits):
    column = np.empty(3, object)
    column[:] = list(pixels(3))

    assert digits({"pixels": column})["probabilities"].shape == (3, 10)


@pytest.mark.parametrize(
    "batch, text",
    [
        ({"image": pixels(1)}, r"the dataset has no column 'pixels' \(it has image\)"),
        ({"pixels": np.array(["a"])}, "input 'pixels' is FP32, and its column is <U1"),
        ({"pixels": np.zeros((2, 5), np.float32)}, "pixels"),
    ],
)
def test_a_batch_that_does_not_fit_is_refused(digits, batch, text):
    with pytest.raises(core.CoreError, match=text) as found:
        digits(batch)
    assert found.value.kind is core.Kind.INVALID


def test_wrong_options_are_refused_where_the_dataset_is_described(repository):
    with pytest.raises(core.CoreError, match="no option 'model_repositories'"):
        Predictor("digits", model_repositories=repository)
    with pytest.raises(core.CoreError, match=r"give a list, \['y'\]"):
        Predictor("digits", outputs="y", model_repository=repository)
