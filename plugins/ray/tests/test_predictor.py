"""A Predictor is a function of batches that can be sent to other processes. These tests need no Ray."""

import pickle
from pathlib import Path

import numpy as np
import pytest
from core_ray import Predictor

import core

MODELS = Path(__file__).parents[3] / "examples" / "models"
ROWS = 150  # more than the model's max_batch_size of 64
SUM_CONFIG = """
backend: "python"
max_batch_size: 8
input [
  { name: "large" data_type: TYPE_INT32 dims: [ 1 ] },
  { name: "positive" data_type: TYPE_UINT8 dims: [ 1 ] },
  { name: "half" data_type: TYPE_FP16 dims: [ 1 ] }
]
output [ { name: "sum" data_type: TYPE_FP64 dims: [ 1 ] } ]
"""
SUM = """
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [
            pb_utils.InferenceResponse([pb_utils.Tensor("sum", sum_of(each))]) for each in requests
        ]


def sum_of(request):
    return sum(each.as_numpy().astype("f8") for each in request.inputs())
"""


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """A repository with `digits`, which batches."""
    pytest.importorskip("backend_onnx")
    folder = tmp_path_factory.mktemp("models")
    (folder / "digits").symlink_to(MODELS / "digits")
    return folder


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    """A Predictor of the Python model `numbers`, with inputs of INT32, UINT8 and FP16."""
    pytest.importorskip("backend_python")
    folder = tmp_path_factory.mktemp("models")
    (folder / "numbers" / "1").mkdir(parents=True)
    (folder / "numbers" / "config.pbtxt").write_text(SUM_CONFIG)
    (folder / "numbers" / "1" / "model.py").write_text(SUM)
    return Predictor("numbers", inputs={"large": "count"}, keep=False, model_repository=folder)


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


@pytest.mark.parametrize(
    "column, values, text",
    [
        ("count", np.array([1, 3_000_000_000]), "'count' has 3000000000, .* range of INT32"),
        ("count", np.array([1, -3_000_000_000]), "'count' has -3000000000, .* range of INT32"),
        ("count", np.array([1, 2**63 + 1], np.uint64), "'count' has 9223372036854775809, "),
        ("positive", np.array([255, 256], np.uint16), "'positive' has 256, .* range of UINT8"),
        ("half", np.array([1, 1e6]), "'half' has 1000000.0, .* range of FP16"),
        ("half", np.array([1, 70_000]), "'half' has 70000, .* range of FP16"),
    ],
)
def test_numbers_that_the_datatype_cannot_hold_are_refused(numbers, column, values, text):
    columns = {"count": np.zeros(2, "i8"), "positive": np.zeros(2, "u8"), "half": np.zeros(2)}

    with pytest.raises(core.CoreError, match=text) as found:
        numbers({**columns, column: values})
    assert found.value.kind is core.Kind.INVALID


def test_the_ends_of_a_range_are_inside_it_and_infinite_numbers_stay(numbers):
    found = numbers(
        {
            "count": np.array([2**31 - 1, -(2**31), 0]),
            "positive": np.array([0, 255, 0], np.uint64),
            "half": np.array([0, 65504.0, -np.inf]),
        }
    )

    np.testing.assert_array_equal(found["sum"], [[2**31 - 1], [-(2**31) + 255 + 65504], [-np.inf]])


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
