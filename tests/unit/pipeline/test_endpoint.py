"""The entry to one model version."""

import numpy as np
import pytest

from core.errors import unavailable
from core.pipeline.admit import Admission
from core.pipeline.endpoint import InFlightRequests, ModelEndpoint
from core.request import InferenceRequest
from core.tensor import Tensor

TEXT = """
    input [{ name: "x" data_type: TYPE_FP32 dims: [ 1 ] }]
    output [{ name: "y" data_type: TYPE_FP32 dims: [ 1 ] }]
"""


@pytest.mark.parametrize("error", [unavailable("full"), ValueError("a fault"), KeyboardInterrupt()])
def test_a_request_that_the_handler_does_not_take_is_not_in_flight(signature, error):
    def refuse(request):
        raise error

    in_flight = InFlightRequests(None)
    endpoint = ModelEndpoint(in_flight, Admission(signature(TEXT)), refuse)
    request = InferenceRequest("m", {"x": Tensor.of("x", np.zeros((1, 1), np.float32))})

    with pytest.raises(type(error)):
        endpoint.submit(request)

    assert in_flight.count == 0
