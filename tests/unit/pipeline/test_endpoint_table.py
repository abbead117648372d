"""The endpoints of the versions that serve."""

import pytest

from core.errors import CoreError, not_found
from core.pipeline.admit import Admission
from core.pipeline.endpoint import InFlightRequests, ModelEndpoint
from core.pipeline.endpoint_table import EndpointTable
from core.request import NEWEST

TEXT = """
    input [{ name: "x" data_type: TYPE_FP32 dims: [ 1 ] }]
    output [{ name: "y" data_type: TYPE_FP32 dims: [ 1 ] }]
"""


@pytest.fixture
def endpoint(signature):
    def make():
        return ModelEndpoint(
            InFlightRequests(None), Admission(signature(TEXT)), lambda request: None
        )

    return make


@pytest.fixture
def endpoints():
    def missing(name, version):
        raise not_found(f"{name} {version}")

    return EndpointTable(missing)


def test_a_version_is_found_by_its_number_and_the_newest_without_one(endpoints, endpoint):
    third, twelfth = endpoint(), endpoint()
    endpoints.put("m", {12: twelfth, 3: third})

    assert endpoints.find("m", 3) is third
    assert endpoints.find("m", 12) is twelfth
    assert endpoints.find("m", NEWEST) is twelfth


def test_put_replaces_all_versions_of_a_model(endpoints, endpoint):
    endpoints.put("m", {1: endpoint(), 2: endpoint()})
    fresh = endpoint()
    endpoints.put("m", {1: fresh})

    assert endpoints.find("m", NEWEST) is fresh
    with pytest.raises(CoreError, match="m 2"):
        endpoints.find("m", 2)


def test_a_model_without_versions_is_missing_and_other_models_stay(endpoints, endpoint):
    other = endpoint()
    endpoints.put("m", {1: endpoint()})
    endpoints.put("other", {1: other})
    endpoints.put("m", {})

    assert endpoints.find("other", 1) is other
    for version in (1, NEWEST):
        with pytest.raises(CoreError, match=f"m {version}"):
            endpoints.find("m", version)


def test_the_missing_callback_may_return_an_endpoint(endpoint):
    other = endpoint()

    assert EndpointTable(lambda name, version: other).find("m", 1) is other


def test_an_endpoint_has_the_signature_of_its_model(endpoint, signature):
    assert endpoint().signature == signature(TEXT)


def test_a_front_stands_before_the_versions_of_its_model(endpoints, endpoint):
    one, two, three, front = (endpoint() for _ in range(4))
    asked = []

    def choose(name, versions):
        asked.append((name, versions))
        return front if name == "m" else None

    endpoints.front = choose
    endpoints.put("m", {1: one, 2: two})
    endpoints.put("other", {1: three})

    assert endpoints.find("m", NEWEST) is front
    assert [endpoints.find("m", number) for number in (1, 2)] == [one, two]
    assert endpoints.find("other", NEWEST) is three
    assert asked == [("m", {1: one, 2: two}), ("other", {1: three})]


def test_a_front_is_asked_again_for_the_versions_that_serve(endpoints, endpoint):
    one, two = endpoint(), endpoint()
    endpoints.put("m", {1: one, 2: two})
    endpoints.front = lambda name, versions: versions[1]

    assert endpoints.find("m", NEWEST) is two
    endpoints.renew("m")
    endpoints.renew("unknown")

    assert endpoints.find("m", NEWEST) is one
    assert [endpoints.find("m", number) for number in (1, 2)] == [one, two]
