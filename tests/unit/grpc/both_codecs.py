"""The native codec of requests for inference, with the one of protobuf as its oracle."""

import numpy as np
import pytest

from core import dtypes
from core.config.signature import InputSpec, Signature
from core.errors import CoreError
from frontends.grpc.native.infer_request import RequestReader
from frontends.grpc.protocol.parse import parse, read
from frontends.shared.memory import SharedMemoryRegions

SIGNATURE = Signature("m", 1, {"x": InputSpec("x", dtypes.FP32, (-1,))}, {}, 0, False)
READER = RequestReader()


def assert_same_request(found, expected):
    """Compare two requests in all that a frontend writes."""
    assert _shown(found) == _shown(expected)


def _shown(request):
    assert request is not None
    values = {name: (type(value), repr(value)) for name, value in request.parameters.items()}
    return (
        request.model_name,
        request.model_version,
        request.id,
        [(name, *_tensor(each)) for name, each in request.inputs.items()],
        [(output.name, output.class_count, output.memory) for output in request.outputs],
        values,
        request.correlation_id,
        type(request.correlation_id),
        request.flags,
        request.priority,
        request.timeout_us,
        request.shared,
    )


def _tensor(each):
    if each.dtype in (dtypes.FP32, dtypes.FP64) and len(each.raw) % each.dtype.byte_size == 0:
        # One NaN is as good as another: a runtime may quiet them.
        elements = [repr(x) for x in np.frombuffer(each.raw, each.dtype.numpy).tolist()]
    else:
        elements = bytes(each.raw)
    return each.name, each.dtype, each.shape, elements


def parsed(message, regions=None):
    """Return the request that `parse` makes of a message; the codec reads the same, or leaves it."""
    data = message.SerializeToString()
    at_once = READER.read(data)
    regions = regions or SharedMemoryRegions(allowed=False)
    try:
        found = parse(read(data), -1, SIGNATURE, regions)
    except CoreError:
        assert at_once is None
        raise
    if at_once is not None:
        assert_same_request(at_once, found)
    return found


def refusal(message):
    with pytest.raises(CoreError) as error:
        parsed(message)
    return error.value
