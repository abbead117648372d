"""Headers that become parameters."""

import pytest

from core.errors import CoreError
from core.request import InferenceRequest
from frontends.shared.v2 import RESERVED, forward_header


def test_forwarded_headers_are_parameters_under_their_names():
    request = InferenceRequest("m", {}, parameters={"a": 1})

    forward_header(request, "X-One", "1")
    forward_header(request, "a", "new")

    assert request.parameters == {"X-One": "1", "a": "new"}


@pytest.mark.parametrize("name", [*sorted(RESERVED), "Timeout", "triton_own", "TRITON_OWN"])
def test_names_of_the_protocol_cannot_be_forwarded(name):
    with pytest.raises(CoreError) as caught:
        forward_header(InferenceRequest("m", {}), name, "1")
    assert caught.value.message == (
        f"Header '{name}' is reserved for Triton usage and cannot be forwarded."
    )
