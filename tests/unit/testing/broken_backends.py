"""Backends with one mistake each, held against the contract kit by test_kit.py.

Each class says by which test of the kit its mistake is found. Where core itself keeps the promise, an example
says something that is not so, or core is broken.
"""

import itertools
import threading
import time

import numpy as np
import pytest

import core
from core.lifecycle.backends import BackendPool
from core.pipeline import Chain
from core.testing import BackendConformance, Example, leftovers, served

X = np.arange(12, dtype=np.float32).reshape(4, 3)
MISTAKES = {}


def caught_by(*tests):
    """The class is to fail in these tests."""

    def register(made):
        MISTAKES.update(dict.fromkeys(tests, made.__name__))
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


class Contract(BackendConformance):
    supports = {"batching", "cpu", "empty_batch"}
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
def impatient(monkeypatch):
    """What the kit waits for will not come: a good backend gets a minute for it, this one need not."""
    monkeypatch.setattr(served, "PATIENCE_S", 3.0)
    monkeypatch.setattr(leftovers, "_PATIENCE_S", 0.3)


class TestWell(Contract):
    instance = Well


class TestWellOnTheLoop(Contract):
    class instance(Well):
        placement = "inline"


class TestWellAsCoroutine(Contract):
    class instance(core.ModelInstance):
        async def execute(self, batch):
            return {"y": -batch["x"]}


# Well in everything else ------------------------------------------------------------------


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


class TestWellInAll(Streaming, Stateful, Shaped, Words):
    supports = {"batching", "cpu", "streaming", "state", "dynamic_shape", "strings"}

    stream_example = Streaming.stream_example
    inner = None

    @pytest.fixture(autouse=True)
    def _which(self, request):
        name = request.node.name
        groups = {"stream": Stream, "sequence": Sum, "text": Words.inner}
        self.inner = next((made for word, made in groups.items() if word in name), Well)


# answers ----------------------------------------------------------------------------------


@caught_by("test_a_request_gets_its_answer")
class TestGivesAnotherDatatype(Contract):
    class instance(Well):
        def execute(self, batch):
            return {"y": -batch["x"].astype(np.float64)}


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


@caught_by("test_the_configuration_describes_what_goes_in_and_out")
class TestIsDescribedWrongly(Contract):
    text = config(outputs=(("y", "TYPE_FP64", "3"),))


@caught_by("test_text_comes_through_as_it_is")
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


# batches ----------------------------------------------------------------------------------


@caught_by("test_rows_of_several_requests_do_not_mix")
class TestMixesRows(Contract):
    class instance(Well):
        def execute(self, batch):
            return {"y": -batch["x"][::-1]}


@caught_by("test_requests_that_arrive_together_share_one_execution")
class TestTakesTwoTurns(Contract):
    class instance(Well):
        turns = 0

        def execute(self, batch):
            self.turns += 1
            if self.turns % 2:
                for i in range(len(batch.requests)):
                    batch.reschedule(i)
                return None
            return super().execute(batch)


@caught_by("test_requests_of_different_sizes_share_a_batch")
class TestBelievesInOneRow(Contract):
    class instance(Well):
        def execute(self, batch):
            return {"y": -batch["x"][: len(batch.requests)]}


@caught_by("test_one_row_alone_gets_the_answer_that_it_gets_among_others")
class TestSqueezesOneRow(Contract):
    class instance(Well):
        def execute(self, batch):
            return {"y": np.squeeze(-batch["x"])}


@caught_by("test_the_largest_batch_is_answered")
class TestTakesFewRows(Contract):
    class instance(Well):
        def execute(self, batch):
            if batch.rows > 4:
                raise ValueError("too many")
            return super().execute(batch)


@caught_by("test_more_requests_than_fit_are_all_answered")
class TestLivesForTwoExecutions(Contract):
    class instance(Well):
        lives = 2

        def execute(self, batch):
            self.lives -= 1
            if self.lives < 0:
                raise ValueError("tired")
            return super().execute(batch)


@caught_by("test_a_request_of_no_rows_gets_no_rows")
class TestNeedsARow(Contract):
    class instance(Well):
        def execute(self, batch):
            batch["x"].max()
            return super().execute(batch)


# refusals ---------------------------------------------------------------------------------


@caught_by("test_a_missing_input_never_reaches_execute")
class TestHasAnOptionalInput(Contract):
    text = config((("x", "TYPE_FP32", "3", "optional: true"),))


@caught_by("test_an_unknown_input_never_reaches_execute")
class TestHasAnotherInput(Contract):
    text = config((("x", "TYPE_FP32", "3"), ("no_such_input", "TYPE_FP32", "3", "optional: true")))


@caught_by("test_a_wrong_datatype_never_reaches_execute")
class TestTakesAnotherDatatype(Contract):
    text = config((("x", "TYPE_UINT32", "3"),))


@caught_by("test_a_shape_of_another_rank_never_reaches_execute")
class TestTakesAnotherRank(Contract):
    text = config((("x", "TYPE_FP32", "3, 1"),))


class Rowless(Contract):
    """It says that it batches, and its configuration does not."""

    @pytest.fixture
    def served(self, serve, example):
        self.supports = {"cpu"}
        return serve(example)


@caught_by("test_too_many_rows_never_reach_execute")
class TestTakesAnyRows(Rowless):
    text = config((("x", "TYPE_FP32", "-1, 3"),), (("y", "TYPE_FP32", "-1, 3"),), rows=0)

    def needs(self, *capabilities):
        """All of them."""


@caught_by("test_inputs_of_different_rows_never_reach_execute")
class TestTakesDifferentRows(TestTakesAnyRows):
    text = config(
        (("a", "TYPE_FP32", "-1, 3"), ("b", "TYPE_FP32", "-1, 3")),
        (("y", "TYPE_FP32", "-1, 3"),),
        rows=0,
    )
    inputs = {"a": X, "b": X}


@caught_by("test_an_unknown_output_never_reaches_execute")
class TestHasAnotherOutput(Contract):
    text = config(outputs=(("y", "TYPE_FP32", "3"), ("no_such_output", "TYPE_FP32", "3")))


# failures ---------------------------------------------------------------------------------


@caught_by("test_after_an_execution_that_raised_the_next_one_is_well")
class TestFailsTheFirstTime(Contract):
    class instance(Well):
        def open(self):
            self.warm = False

        def execute(self, batch):
            if not self.warm:
                self.warm = True
                raise ValueError("cold")
            return super().execute(batch)


@caught_by("test_an_input_that_the_model_cannot_answer_fails_alone")
class TestIsPoisoned(Contract):
    class instance(Well):
        poisoned = False

        def execute(self, batch):
            self.poisoned = self.poisoned or bool((batch["x"] < 0).any())
            if self.poisoned:
                raise ValueError("negative")
            return super().execute(batch)

    @pytest.fixture
    def example(self, tmp_path):
        return self.made(tmp_path, failing={"x": -1 - X})


@caught_by(
    "test_a_model_that_cannot_load_says_why_and_leaves_nothing_open",
    "test_an_instance_that_cannot_open_unloads_the_model",
)
class TestStaysOpen(Contract):
    @pytest.fixture(autouse=True)
    def _broken_core(self, monkeypatch):
        async def release(self, backend):
            """Closes nothing."""

        monkeypatch.setattr(BackendPool, "release", release)


class LoadsOnce(core.Model):
    def load(self):
        if getattr(self.backend, "loaded", False):
            raise ValueError("once is enough")
        self.backend.loaded = True


@caught_by(
    "test_what_could_not_load_loads_when_the_reason_is_gone",
    "test_a_model_can_be_loaded_again_after_it_was_unloaded",
)
class TestLoadsOnce(Contract):
    model = LoadsOnce


@caught_by("test_a_version_without_its_files_fails_with_a_reason")
class TestNeedsNoFiles(Contract):
    @pytest.fixture
    def example(self, tmp_path):
        (tmp_path / "weights").touch()
        return self.made(tmp_path)


@caught_by("test_a_cancelled_request_does_not_disturb_the_others")
class TestTakesOneRequest(Contract):
    class instance(Well):
        def execute(self, batch):
            if len(batch.requests) > 1:
                raise ValueError("one at a time")
            return super().execute(batch)


# lifecycle --------------------------------------------------------------------------------


@caught_by("test_calls_come_from_the_outside_in_and_back")
class TestExecutesWhileItOpens(Contract):
    class instance(Well):
        def open(self):
            self.execute({"x": X})


@caught_by("test_every_instance_is_opened_and_closed")
class TestLoadsForEachInstance(Contract):
    class instance(Well):
        def open(self):
            self.model.load()


@caught_by("test_an_instance_may_be_closed_twice")
class TestCannotBeClosedTwice(Contract):
    class instance(Well):
        def open(self):
            self.resource = [1]

        def close(self):
            self.resource.pop()


@caught_by("test_unloading_one_server_leaves_the_other_one_well")
class TestClosesWhatOthersUse(Contract):
    closed = []

    class instance(Well):
        def close(self):
            TestClosesWhatOthersUse.closed.append(self)

        def execute(self, batch):
            if TestClosesWhatOthersUse.closed:
                raise ValueError("closed")
            return super().execute(batch)


@caught_by("test_no_thread_or_process_stays_after_the_unload")
@pytest.mark.usefixtures("impatient")
class TestLeavesAThread(Contract):
    class instance(Well):
        def open(self):
            threading.Thread(target=time.sleep, args=(20,), name="left", daemon=True).start()


class Leaves:
    """Something of every load."""

    left = []


@caught_by("test_nothing_stays_after_many_loads")
class TestLeavesMemory(Contract):
    class instance(Well):
        def open(self):
            Leaves.left.append(bytes(1 << 20) + b"1")  # written to, so that it is there


@caught_by("test_nothing_holds_a_model_or_instance_after_the_unload")
@pytest.mark.usefixtures("impatient")
class TestIsHeldForever(Contract):
    class instance(Well):
        def open(self):
            Leaves.left.append(self)


# More mistakes that one test finds; the first of a test is in the table.
@pytest.mark.usefixtures("impatient")
class TestLeavesAFile(Contract):
    class instance(Well):
        def open(self):
            Leaves.left.append(open(__file__))  # noqa: SIM115 - that is the mistake


# concurrency ------------------------------------------------------------------------------


class Alone(Well):
    """Only one of them may be open."""

    def open(self):
        if self.model.backend.config.setdefault("open", "no") == "yes":
            raise ValueError("there is one already")
        self.model.backend.config["open"] = "yes"


@caught_by("test_two_instances_answer_at_the_same_time")
class TestIsAlone(Contract):
    instance = Alone


@caught_by("test_two_models_of_one_backend_answer_at_the_same_time")
class TestIsOneModel(Contract):
    class model(core.Model):
        def load(self):
            self.backend.users = getattr(self.backend, "users", 0) + 1
            if self.backend.users > 1:
                raise ValueError("there is one already")


@caught_by("test_a_thousand_requests_in_flight_are_all_answered")
class TestTiresSlowly(Contract):
    class instance(TestLivesForTwoExecutions.instance):
        lives = 60


@caught_by("test_cancelled_requests_end_and_the_others_are_answered")
class TestTakesFewRequests(Contract):
    class instance(TestLivesForTwoExecutions.instance):
        lives = 3


@caught_by("test_an_unload_waits_for_the_last_answer")
@pytest.mark.usefixtures("impatient")
class TestDoesNotWait(Contract):
    @pytest.fixture(autouse=True)
    def _broken_core(self, monkeypatch):
        async def drain(self):
            """Waits for nobody."""

        monkeypatch.setattr(Chain, "drain", drain)


# streams ----------------------------------------------------------------------------------


@caught_by("test_a_stream_gives_its_answers_in_order_and_ends")
class TestStreamsBackwards(Streaming):
    class inner(Stream):
        numbers = staticmethod(lambda n: range(1, n + 1))


@caught_by("test_two_streams_do_not_mix")
class TestStreamsOnce(Streaming):
    class inner(Stream):
        def open(self):
            left = itertools.chain([3, 2, 1], itertools.repeat(0))
            self.numbers = lambda n: itertools.islice(left, n)


@caught_by("test_a_cancelled_stream_ends_and_the_next_one_is_whole")
class TestGoesOnWithWhatWasCancelled(Streaming):
    class inner(Stream):
        ran = 0

        def numbers(self, n):
            self.ran += 1
            return range(n, 0, -1) if self.ran == 1 else range(1, 0, -1)


# state ------------------------------------------------------------------------------------


@caught_by("test_a_request_of_a_sequence_gets_what_the_one_before_has_left")
class TestForgets(Stateful):
    class inner(Sum):
        def execute(self, batch):
            return {"y": batch["x"], "after": batch["x"]}


class RemembersItself(Sum):
    """It keeps the state itself, and does not see whose it is."""

    total = 0.0

    def execute(self, batch):
        answers = []
        for value in batch["x"].ravel():
            self.total += float(value)
            answers.append([self.total])
        found = np.array(answers, np.float32)
        return {"y": found, "after": found}


@caught_by(
    "test_a_sequence_that_begins_again_begins_anew", "test_sequences_do_not_share_their_state"
)
class TestRemembersItself(Stateful):
    inner = RemembersItself


# devices, native --------------------------------------------------------------------------


@caught_by("test_an_instance_of_a_cpu_group_is_on_the_cpu")
class TestChoosesItsDevice(Contract):
    class instance(Well):
        def open(self):
            self.device = core.Device("GPU", 1)


@caught_by("test_an_instance_answers_without_its_python_method")
class TestIsNotNative(Contract):
    supports = {"batching", "cpu", "native"}
