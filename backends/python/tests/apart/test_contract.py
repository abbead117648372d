"""Models of other backends in child processes keep the contract of their backends."""

import pytest
from backend_testing import conformance as native
from core_testing.answers import Answers
from core_testing.batches import Batches
from core_testing.kit import Kit
from core_testing.state import State
from core_testing.streams import Streams

from core import plugins

onnx = pytest.importorskip("backend_onnx.conformance", reason="needs backend-onnx")


class Apart(Kit):
    """Serves each example in a process."""

    more_config = 'parameters { key: "EXECUTION_MODE" value { string_value: "process" } }'

    @pytest.fixture(autouse=True)
    def _named(self, example):
        plugins.backend(example.backend.name or "identity")  # sets its name on first use

    @pytest.fixture
    def calls(self):
        pytest.skip("the backend is called in another process")


class TestOnnxApart(Apart, Answers, Batches, State):
    supports = onnx.TestOnnx.supports
    example = onnx.TestOnnx.example
    other_shapes = onnx.TestOnnx.other_shapes
    strings_example = onnx.TestOnnx.strings_example
    state_example = onnx.TestOnnx.state_example


class TestNativeApart(Apart, Answers):
    """The tests of answers for a backend that core calls by its C interface."""

    supports = native.TestIdentity.supports
    example = native.TestIdentity.example
    other_shapes = native.TestIdentity.other_shapes
    strings_example = native.TestIdentity.strings_example


class TestStreamsApart(Apart, Streams):
    supports = native.TestRepeat.supports
    example = native.TestRepeat.example
    stream_example = native.TestRepeat.stream_example
