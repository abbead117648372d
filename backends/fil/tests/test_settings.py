"""Parameters of config.pbtxt: current names, removed names and invalid values."""

import pytest
from backend_fil import backend
from backend_fil.settings import settings_of, warn

from core.config import parse_text
from core.errors import CoreError, Kind


def config_of(**values):
    entries = "".join(
        f'parameters {{ key: "{name}" value {{ string_value: "{value}" }} }}'
        for name, value in values.items()
    )
    return parse_text(f'name: "m" {entries}', "config.pbtxt")


def test_the_defaults_are_those_of_triton():
    found = settings_of(config_of())

    assert (found.model_type, found.is_classifier, found.predict_proba) == (None, None, False)
    assert (found.threshold, found.allow_unknown_field, found.threads) == (0.5, False, 0)
    assert (found.layout, found.chunk_size, found.transfer_threshold) == ("depth_first", 0, 0)


def test_every_parameter_is_read():
    found = settings_of(
        config_of(
            model_type="lightgbm",
            is_classifier="true",
            predict_proba="True",
            threshold="0.25",
            xgboost_allow_unknown_field="1",
            layout="layered",
            chunk_size="8",
            transfer_threshold="100",
            cpu_nthread="3",
            use_experimental_optimizations="true",
        )
    )

    assert (found.model_type, found.is_classifier, found.predict_proba) == ("lightgbm", True, True)
    assert (found.threshold, found.allow_unknown_field, found.threads) == (0.25, True, 3)
    assert (found.layout, found.chunk_size, found.transfer_threshold) == ("layered", 8, 100)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("is_classifier", "yes", "true or false"),
        ("output_class", "2", "true or false"),
        ("predict_proba", "", "true or false"),
        ("threshold", "half", "a number"),
        ("threshold", "nan", "a number"),
        ("xgboost_allow_unknown_field", "maybe", "true or false"),
        ("layout", "ALGO_AUTO", "depth_first or breadth_first or layered"),
        ("chunk_size", "3", "a power of two up to 32"),
        ("chunk_size", "64", "a power of two up to 32"),
        ("chunk_size", "-1", "a whole number, 0 or larger"),
        ("transfer_threshold", "few", "a whole number, 0 or larger"),
        ("cpu_nthread", "-2", "a whole number, -1 or larger"),
        ("use_experimental_optimizations", "no", "true or false"),
    ],
)
def test_an_invalid_value_is_refused(name, value, expected):
    with pytest.raises(CoreError) as caught:
        settings_of(config_of(**{name: value}))

    assert caught.value.kind is Kind.INVALID
    assert f"model 'm': parameter '{name}' is '{value}', it must be {expected}" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value", "advice"),
    [
        ("output_class", "true", "Use `is_classifier` instead."),
        ("algo", "BATCH_TREE_REORG", "Use `layout` instead."),
        ("threads_per_tree", "4", "Use `chunk_size` instead."),
        ("storage_type", "SPARSE", "It has no effect."),
        ("blocks_per_sm", "2", "It has no effect."),
    ],
)
def test_an_old_parameter_is_accepted_with_a_warning(warnings_of, name, value, advice):
    config = config_of(**{name: value})

    warn(config)

    expected = f"The `{name}` parameter has been removed in 25.09 release. {advice}"
    assert warnings_of() == [f"model 'm': {expected}"]
    found = settings_of(config)
    assert found.is_classifier is (True if name == "output_class" else None)
    assert (found.layout, found.chunk_size) == ("depth_first", 0)


def test_the_current_name_wins_over_the_old_one():
    found = settings_of(config_of(output_class="true", is_classifier="false"))

    assert found.is_classifier is False


def test_every_current_and_old_parameter_is_known():
    assert set(backend.known_parameters) >= {"threshold", "cpu_nthread", "algo", "blocks_per_sm"}
