"""The doors of the versions that serve."""

import pytest

from core.errors import CoreError, not_found
from core.pipeline.admit import Admission
from core.pipeline.doors import Doors
from core.pipeline.intake import Door, Intake
from core.request import NEWEST

TEXT = """
    input [{ name: "x" data_type: TYPE_FP32 dims: [ 1 ] }]
    output [{ name: "y" data_type: TYPE_FP32 dims: [ 1 ] }]
"""


@pytest.fixture
def door(signature):
    def make():
        return Door(Intake(None), Admission(signature(TEXT)), lambda request: None)

    return make


@pytest.fixture
def doors():
    def missing(name, version):
        raise not_found(f"{name} {version}")

    return Doors(missing)


def test_a_version_is_found_by_its_number_and_the_newest_without_one(doors, door):
    third, twelfth = door(), door()
    doors.put("m", {12: twelfth, 3: third})

    assert doors.find("m", 3) is third
    assert doors.find("m", 12) is twelfth
    assert doors.find("m", NEWEST) is twelfth


def test_versions_that_are_put_take_the_place_of_all_before(doors, door):
    doors.put("m", {1: door(), 2: door()})
    fresh = door()
    doors.put("m", {1: fresh})

    assert doors.find("m", NEWEST) is fresh
    with pytest.raises(CoreError, match="m 2"):
        doors.find("m", 2)


def test_a_model_without_versions_is_missing_and_others_stay(doors, door):
    other = door()
    doors.put("m", {1: door()})
    doors.put("other", {1: other})
    doors.put("m", {})

    assert doors.find("other", 1) is other
    for version in (1, NEWEST):
        with pytest.raises(CoreError, match=f"m {version}"):
            doors.find("m", version)


def test_who_knows_better_may_give_a_door_that_is_not_there(door):
    other = door()

    assert Doors(lambda name, version: other).find("m", 1) is other


def test_a_door_tells_what_is_behind_it(door, signature):
    assert door().signature == signature(TEXT)
