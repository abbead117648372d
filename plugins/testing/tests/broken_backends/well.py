"""Backends without a mistake."""

import pytest

import core
from broken_backends.contract import Contract, Shaped, Stateful, Stream, Streaming, Sum, Well, Words


class TestWell(Contract):
    instance = Well


class TestWellOnTheLoop(Contract):
    class instance(Well):
        placement = "inline"


class TestWellAsCoroutine(Contract):
    class instance(core.ModelInstance):
        async def execute(self, batch):
            return {"y": -batch["x"]}


class TestWellInAll(Streaming, Stateful, Shaped, Words):
    supports = {"batching", "cpu", "streaming", "state", "dynamic_shape", "strings"}

    stream_example = Streaming.stream_example
    inner = None

    @pytest.fixture(autouse=True)
    def _which(self, request):
        name = request.node.name
        groups = {"stream": Stream, "sequence": Sum, "text": Words.inner}
        self.inner = next((made for word, made in groups.items() if word in name), Well)
