"""Which models need which."""

from core.lifecycle.dependencies import circular, needed_by, users_of

STEPS = {"outer": ["inner", "leaf"], "inner": ["leaf", "twig"], "lone": ["twig"]}


def test_users_come_before_the_models_that_they_need():
    assert users_of(["leaf"], STEPS) == ["outer", "inner"]


def test_all_users_of_several_models_are_found():
    assert sorted(users_of(["twig"], STEPS)) == ["inner", "lone", "outer"]
    assert users_of(["outer"], STEPS) == []


def test_models_load_after_the_models_that_they_need():
    found = needed_by("outer", STEPS)

    assert sorted(found) == ["inner", "leaf", "twig"]
    assert found[0] == "inner"


def test_a_model_without_steps_has_no_dependencies():
    assert needed_by("leaf", STEPS) == []


def test_a_circle_is_found_and_its_users_are_no_part_of_it():
    steps = {"a": ["b"], "b": ["c"], "c": ["b"], "d": ["d"]}

    assert circular(steps) == {"b": ["b", "c", "b"], "c": ["c", "b", "c"], "d": ["d", "d"]}
    assert circular(STEPS) == {}


def test_a_way_around_goes_from_ensemble_to_step():
    steps = {"a": ["b"], "b": ["c"], "c": ["a"]}

    assert circular(steps)["b"] == ["b", "c", "a", "b"]


def test_a_circle_does_not_stop_the_search():
    steps = {"a": ["b"], "b": ["a"]}

    assert users_of(["a"], steps) == ["b"]
    assert needed_by("a", steps) == ["b"]
