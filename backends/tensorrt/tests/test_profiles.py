"""The optimization profile of a batch."""

import pytest
from backend_tensorrt.profiles import chosen, numbers, profiles_of

from core.errors import CoreError

SMALL, LARGE, ANY = ((1, 4), (1, 4), (2, 8)), ((4, 4), (16, 8), (32, 8)), ((1, 4), (8, 4), (32, 8))


@pytest.fixture
def profiles(facts, port):
    return profiles_of(
        facts(port("x", SMALL, LARGE, ANY), port("y", dims=(-1,))), ("0", "1", "2"), "m"
    )


@pytest.mark.parametrize(
    ("shape", "number"),
    [((1, 4), 0), ((2, 8), 0), ((3, 4), 2), ((8, 4), 2), ((16, 8), 1), ((32, 8), 1), ((12, 4), 2)],
)
def test_the_profile_with_the_nearest_optimum_is_chosen(profiles, shape, number):
    assert chosen(profiles, {"x": shape}, {}, "m").number == number


def test_the_first_of_equal_profiles_is_chosen(facts, port):
    two = profiles_of(facts(port("x", SMALL, SMALL)), ("1", "0"), "m")

    assert chosen(two, {"x": (1, 4)}, {}, "m").number == 1


@pytest.mark.parametrize("shape", [(33, 4), (1, 3), (1, 9), (1, 4, 1)])
def test_a_batch_that_no_profile_allows_is_refused(profiles, shape):
    with pytest.raises(CoreError) as error:
        chosen(profiles, {"x": shape}, {}, "m")

    for number, bounds in enumerate(("[1, 4] to [2, 8]", "[4, 4] to [32, 8]", "[1, 4] to [32, 8]")):
        assert f"profile {number} takes {bounds}" in error.value.message
    assert f"which is {list(shape)}" in error.value.message


def test_values_of_shape_tensors_count_too(facts, port):
    size = ((1,), (1,), (1,))
    values = [((1,), (2,), (4,)), ((1,), (100,), (200,))]
    ports = (
        port("x", SMALL, SMALL),
        port("n", size, size, kind="INT32", on_host=True, values=values),
    )
    two = profiles_of(facts(*ports), ("0", "1"), "m")

    assert chosen(two, {"x": (1, 4), "n": (1,)}, {"n": (3,)}, "m").number == 0
    assert chosen(two, {"x": (1, 4), "n": (1,)}, {"n": (60,)}, "m").number == 1
    with pytest.raises(
        CoreError, match=r"\[1\] to \[4\] for the values of input 'n', which is \[500\]"
    ):
        chosen(two, {"x": (1, 4), "n": (1,)}, {"n": (500,)}, "m")


def test_numbers_of_a_group():
    assert numbers((), 3, "m") == (0,)
    assert numbers(("2", "0", "2"), 3, "m") == (2, 0)


@pytest.mark.parametrize("name", ["3", "-1", "first", "", "²"])
def test_an_unknown_profile_is_refused(name):
    with pytest.raises(
        CoreError, match=f"says '{name}', the engine has the optimization profiles 0 to 2"
    ):
        numbers((name,), 3, "m")
