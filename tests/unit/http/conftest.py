"""Small words for requests over HTTP, without sockets."""

import json

import pytest
from multidict import CIMultiDict

from core import dtypes
from core.config import InputSpec, Signature
from core.errors import CoreError, Kind
from frontends.http.codec.parse import parse
from frontends.shared.memory import SharedMemoryRegions

MOST = 2**20


ONE = Signature("m", 1, {"x": InputSpec("x", dtypes.FP32, (-1,))}, {}, 0, False)


@pytest.fixture
def parsed():
    """Parse a JSON document (or bytes) and what follows it; (request, form)."""

    def parse_body(document, tail=None, headers=(), signature=ONE, most=MOST, regions=None):
        head = document if isinstance(document, bytes) else json.dumps(document).encode()
        found = CIMultiDict(headers)
        if tail is not None:
            found.setdefault("Inference-Header-Content-Length", str(len(head)))
        regions = regions or SharedMemoryRegions(allowed=False)
        return parse("m", -1, signature, found, head + (tail or b""), most, regions)

    return parse_body


@pytest.fixture
def refusal(parsed):
    """The text with which a request is refused as malformed."""

    def text_of(*args, kind=Kind.INVALID, **kwargs):
        with pytest.raises(CoreError) as caught:
            parsed(*args, **kwargs)
        assert caught.value.kind is kind
        return caught.value.message

    return text_of


@pytest.fixture
def tensor():
    """An input of a JSON request."""

    def entry(data, shape=None, datatype="FP32", name="x", **parameters):
        found = {
            "name": name,
            "datatype": datatype,
            "shape": [len(data)] if shape is None else shape,
            "data": data,
        }
        return {**found, "parameters": parameters} if parameters else found

    return entry
