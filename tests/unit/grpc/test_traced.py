"""The trace context of a client in the metadata of a call."""

from types import SimpleNamespace

import pytest

from core.request import InferenceRequest
from frontends.grpc.services.traced import bring_context

METADATA = {"traceparent": "00-" + "1" * 32 + "-" + "2" * 16 + "-01"}


class Call:
    metadata = tuple(METADATA.items())
    value = staticmethod(METADATA.get)


def tracer(*, on, takes_context=True):
    return SimpleNamespace(
        on=on, takes_context=takes_context, context=lambda parent, states: (parent, states)
    )


def test_a_request_that_may_be_traced_has_the_context_of_its_client():
    request = InferenceRequest("m", {})
    bring_context(tracer(on=True), Call(), request)
    assert request.trace == (METADATA["traceparent"], [])


@pytest.mark.parametrize("found", [tracer(on=False), tracer(on=True, takes_context=False)])
def test_otherwise_the_context_is_not_read(found):
    """The pipeline expects a trace there: nothing would make one of the context."""
    request = InferenceRequest("m", {})
    bring_context(found, Call(), request)
    assert request.trace is None
