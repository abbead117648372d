"""Mistakes in single answers."""

import itertools

import numpy as np

import core
from broken_backends.contract import Contract, Shaped, Well, Words, X, caught_by, config


@caught_by("test_a_request_gets_its_answer")
class TestGivesAnotherDatatype(Contract):
    class instance(Well):
        def execute(self, batch):
            return {"y": -batch["x"].astype(np.float64)}


class TestGivesNoNames(Contract):
    class instance(Well):
        def execute(self, batch):
            return -batch["x"]


class TestGivesWhatIsNoArray(Contract):
    class instance(Well):
        def execute(self, batch):
            return {"y": Unreadable()}


class Unreadable:
    def __array__(self, *arguments, **more):
        raise RuntimeError("not today")


@caught_by("test_the_same_request_again_gets_the_same_answer")
class TestRemembers(Contract):
    class instance(Well):
        def open(self):
            self.count = itertools.count()

        def execute(self, batch):
            return {"y": -batch["x"] + np.float32(next(self.count))}


@caught_by("test_an_answer_does_not_change_under_later_requests")
class TestAnswersFromOneBuffer(Contract):
    class instance(Well):
        def open(self):
            self.buffer = np.empty((8, 3), np.float32)

        def execute(self, batch):
            return {"y": np.negative(batch["x"], out=self.buffer[: batch.rows])}


@caught_by("test_the_order_of_the_inputs_does_not_matter")
class TestTakesInputsByTheirPlace(Contract):
    inputs = {"a": X, "b": 2 * X}
    expected = {"y": -X}

    class instance(Well):
        def execute(self, batch):
            first, second = batch.requests[0].inputs
            return {"y": batch[first] - batch[second]}


@caught_by("test_only_the_wanted_output_comes_back")
class TestCannotLeaveOutputsOut(Contract):
    class instance(Well):
        def execute(self, batch):
            if any(request.outputs for request in batch.requests):
                raise ValueError("all or nothing")
            return super().execute(batch)


@caught_by("test_input_bytes_may_lie_at_an_odd_address")
class TestNeedsAlignedInputs(Contract):
    class instance(Well):
        def execute(self, batch):
            if batch["x"].ctypes.data % 4:
                raise ValueError("misaligned")
            return super().execute(batch)


@caught_by("test_the_bytes_of_a_request_are_not_written_to")
class TestWritesIntoItsInputs(Contract):
    class instance(Well):
        def execute(self, batch):
            x = batch["x"]
            if x.flags.writeable:
                x *= -1
                return {"y": x}
            return {"y": -x}


@caught_by("test_the_configuration_describes_inputs_and_outputs")
class TestIsDescribedWrongly(Contract):
    text = config(outputs=(("y", "TYPE_FP64", "3"),))


@caught_by("test_text_comes_back_unchanged")
class TestStripsText(Words):
    class inner(core.ModelInstance):
        def execute(self, batch):
            words = [[word.strip()] for (word,) in batch["x"]]
            return {"y": np.array(words, object)}


@caught_by("test_every_shape_gets_its_answer", "test_requests_of_several_shapes_arrive_together")
class TestKeepsItsFirstShape(Shaped):
    class inner(Well):
        shape = None

        def execute(self, batch):
            self.shape = self.shape or batch["x"].shape[1:]
            return {"y": np.resize(-batch["x"], (batch.rows, *self.shape))}
