"""Base classes of broken backends: backends without a mistake, and the list of those that have one."""

import numpy as np
import pytest

import core
from core.testing import BackendConformance, Example, leftovers, served, server_thread

X = np.arange(12, dtype=np.float32).reshape(4, 3)
MISTAKES = {}  # test of the kit → file::class that is to fail in it
SAYS = {}  # (file::class, test) → words of the failure, where they are not those of the comparison


def caught_by(*tests, says=""):
    """Mark a class that must fail in these tests; `says` are words of the failure's text."""

    def register(made):
        place = f"{made.__module__.rpartition('.')[2]}.py::{made.__name__}"
        MISTAKES.update(dict.fromkeys(tests, place))
        SAYS.update({(place, test): says for test in tests})
        return made

    return register


def config(inputs=(("x", "TYPE_FP32", "3"),), outputs=(("y", "TYPE_FP32", "3"),), more="", rows=8):
    """A configuration; each tensor is a name, a datatype, dims, and perhaps more of its entry."""

    def entries(kind, tensors):
        return "".join(
            f'{kind} {{ name: "{name}" data_type: {dtype} dims: [ {dims} ] {" ".join(rest)} }}\n'
            for name, dtype, dims, *rest in tensors
        )

    return (
        f"max_batch_size: {rows}\n" + entries("input", inputs) + entries("output", outputs) + more
    )


class Well(core.ModelInstance):
    def execute(self, batch):
        return {"y": -batch["x"]}


class LivesForTwoExecutions(Well):
    lives = 2

    def execute(self, batch):
        self.lives -= 1
        if self.lives < 0:
            raise ValueError("tired")
        return super().execute(batch)


class Contract(BackendConformance):
    supports = {"batching", "cpu"}
    loads = 20
    instance = Well
    model = core.Model
    inputs = {"x": X}
    expected = {"y": -X}
    text = None

    @pytest.fixture
    def example(self, tmp_path):
        return self.made(tmp_path)

    def made(self, folder, **changes):
        backend = core.Backend(instance=self.instance, model=self.model)
        found = {"inputs": self.inputs, "expected": self.expected, "config": self.text, **changes}
        return Example(backend, folder, **found)

    @pytest.fixture
    def impatient(self, monkeypatch):
        """Use a short timeout: the kit waits in vain here; a good backend gets a minute."""
        for module in (served, server_thread):
            monkeypatch.setattr(module, "PATIENCE_S", 3.0)
        monkeypatch.setattr(leftovers, "_PATIENCE_S", 0.3)


class Stream(core.ModelInstance):
    numbers = staticmethod(lambda n: range(n, 0, -1))

    def stream(self, request):
        n = int(request.inputs["n"].array.ravel()[0])
        for left in self.numbers(n):
            yield {"left": np.array([[left]], np.int32)}


class Streaming(Contract):
    supports = {"batching", "cpu", "streaming"}
    inner = Stream

    @pytest.fixture
    def stream_example(self, tmp_path):
        expected = [{"left": np.array([[left]], np.int32)} for left in (3, 2, 1)]
        backend = core.Backend(instance=self.inner)
        return Example(backend, tmp_path, {"n": np.array([[3]], np.int32)}, expected)


class Sum(core.ModelInstance):
    def execute(self, batch):
        after = batch["before"] + batch["x"]
        return {"y": after, "after": after}


class Stateful(Contract):
    supports = {"batching", "cpu", "state"}
    inner = Sum

    @pytest.fixture
    def state_example(self, tmp_path):
        state = 'input_name: "before" output_name: "after" data_type: TYPE_FP32 dims: [ 1 ]'
        text = config(
            (("x", "TYPE_FP32", "1"),),
            (("y", "TYPE_FP32", "1"),),
            f"sequence_batching {{ direct {{ }} state {{ {state} }} }}",
        )
        expected = [{"y": np.array([[total]], np.float32)} for total in (2, 4, 6)]
        backend = core.Backend(instance=self.inner)
        return Example(backend, tmp_path, {"x": np.array([[2]], np.float32)}, expected, text)


class Shaped(Contract):
    supports = {"batching", "cpu", "dynamic_shape"}
    inner = Well

    @pytest.fixture
    def other_shapes(self, tmp_path):
        text = config((("x", "TYPE_FP32", "-1"),), (("y", "TYPE_FP32", "-1"),))
        backend = core.Backend(instance=self.inner)
        arrays = [np.ones((2, width), np.float32) for width in (3, 1, 5)]
        return [Example(backend, tmp_path, {"x": x}, {"y": -x}, text) for x in arrays]


class Words(Contract):
    supports = {"batching", "cpu", "strings"}

    class inner(core.ModelInstance):
        def execute(self, batch):
            return {"y": batch["x"]}

    @pytest.fixture
    def strings_example(self, tmp_path):
        words = np.array([[b" a "], ["ä€".encode()]], object)
        return Example(core.Backend(instance=self.inner), tmp_path, {"x": words}, {"y": words})
