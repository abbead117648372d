"""Missing fields of config.pbtxt are completed from the file."""

import pytest

from core.errors import CoreError


def dims(config):
    return {io.name: tuple(io.dims) for io in (*config.input, *config.output)}


@pytest.fixture
def binary(forests):
    rows, labels = forests.tumours()
    return forests.xgboost(rows, labels, objective="binary:logistic", trees=2)


@pytest.fixture
def three_classes(forests):
    rows, labels = forests.wines()
    return forests.xgboost(rows, labels, objective="multi:softprob", num_class=3, trees=2)


def test_a_configuration_needs_the_backend_only(serve, binary, warnings_of):
    config = serve(binary).config

    assert dims(config) == {"input__0": (30,), "output__0": (1,)}
    assert config.max_batch_size == 32768
    assert config.HasField("dynamic_batching")
    assert any("autofilled max_batch_size to 32768 for model 'm'" in each for each in warnings_of())


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, 1),
        ({"predict_proba": "true"}, 3),
        ({"is_classifier": "false"}, 3),
    ],
)
def test_the_output_follows_the_parameters(serve, three_classes, values, expected):
    config = serve(three_classes, **values).config

    assert dims(config) == {"input__0": (13,), "output__0": (expected,)}


def test_two_classes_have_two_probabilities(serve, binary):
    assert dims(serve(binary, predict_proba="true").config)["output__0"] == (2,)


def test_entries_that_only_have_a_name_are_completed(serve, three_classes):
    config = serve(
        three_classes,
        'max_batch_size: 7 output [{ name: "treeshap_output" }, { name: "output__0" }]',
        predict_proba="true",
    ).config

    assert dims(config) == {
        "input__0": (13,),
        "treeshap_output": (3, 14),
        "output__0": (3,),
    }
    assert config.max_batch_size == 7


def test_dims_with_rows_mean_a_model_that_does_not_batch(serve, three_classes):
    config = serve(
        three_classes,
        'input [{ name: "input__0" data_type: TYPE_FP32 dims: [ -1, 13 ] }]',
        predict_proba="true",
    ).config

    assert dims(config) == {"input__0": (-1, 13), "output__0": (-1, 3)}
    assert config.max_batch_size == 0


def test_the_default_of_max_batch_size_is_a_setting(serve, binary):
    assert serve(binary, settings={"default-max-batch-size": "64"}).config.max_batch_size == 64


def test_a_default_that_is_no_number_is_refused(serve, binary):
    with pytest.raises(CoreError, match="fil,default-max-batch-size=many: it must be a whole num"):
        serve(binary, settings={"default-max-batch-size": "many"})
