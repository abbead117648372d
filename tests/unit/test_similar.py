"""Names that are similar to a misspelt one, within bounds."""

import pytest

from core.similar import did_you_mean, nearest


@pytest.mark.parametrize(
    ("found", "name"),
    [("irsi", "iris"), ("IRIS", "iris"), ("resnet", "resnet50"), ("zzz", ""), ("", "")],
)
def test_the_nearest_name_is_found_in_any_case(found, name):
    assert nearest(found, ["iris", "resnet50", "words"]) == name


def test_the_hint_ends_an_error_text():
    assert did_you_mean("irsi", ["iris"]) == "; did you mean 'iris'?"
    assert did_you_mean("irsi", []) == ""


def test_a_long_name_is_not_compared():
    assert nearest("y" * 100, ["y" * 100]) == "y" * 100
    assert nearest("y" * 101, ["y" * 101]) == ""


def test_only_the_first_of_many_names_are_compared():
    names = iter([f"model{i}" for i in range(1000)])
    nearest("modell", names)

    assert next(names) == "model200"
