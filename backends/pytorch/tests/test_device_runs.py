"""Batches on a fake GPU: copies, the order of operations, and accesses to the host."""

import asyncio

import numpy as np
import pytest
import torch
from backend_pytorch.instance import TorchInstance
from core_testing.fake_device import DeviceArray, FakeDevice

from core import dtypes
from core.devices import dlpack
from core.errors import CoreError
from core.request import SEQUENCE_START, DeviceOutput, InferenceRequest, RequestedOutput
from core.tensor import Tensor
from frontends.shared.memory import CudaPlace

GROUP = "instance_group [ { kind: KIND_MODEL count: 1 } ] "
X = np.arange(6, dtype=np.float32).reshape(2, 3)
BATCHES = "max_batch_size: 8 dynamic_batching { max_queue_delay_microseconds: 200000 } "
STAYS = (DeviceOutput("y"),)


@pytest.fixture
def streams(monkeypatch, fake_streams):
    """The FakeStreams of all open instances."""
    made = []
    gpu = FakeDevice()

    def streams_of(device, program, polls):
        made.append(fake_streams(gpu, program.keeps_outputs))
        return made[-1]

    ran = TorchInstance.outputs_of

    def outputs_of(instance, tensors, batch):
        instance._runs._streams.did("run")
        instance._runs._streams.given = tensors
        return ran(instance, tensors, batch)

    monkeypatch.setattr("backend_pytorch.instance.has_gpus", lambda: True)
    monkeypatch.setattr("backend_pytorch.cuda.streams_of", streams_of)
    monkeypatch.setattr(TorchInstance, "outputs_of", outputs_of)
    return made


@pytest.fixture
def model(serve, io, streams):
    """model(module, config): serve x: FP32[3] → y: FP32[3] on a fake GPU; return it and its streams."""

    def start(module, config="max_batch_size: 8 ", dims="3"):
        ports = io("input", ("x", "FP32", dims)) + io("output", ("y", "FP32", dims))
        return serve(module, config + ports + GROUP), streams[-1]

    return start


def asked(x, outputs=(), **more):
    return InferenceRequest("m", {"x": Tensor.of("x", x)}, outputs=outputs, **more)


def tensors(model, *requests):
    """Send the requests at once; return core's Tensor y of each. Raises the error of a request."""

    async def act():
        replies = [model.served._server.models.infer(each) for each in requests]
        return [(await reply).output("y") for reply in replies]

    return model.served._call(act())


class TestInputs:
    def test_host_inputs_use_pinned_memory_and_outputs_come_after_the_mark(self, model, modules):
        served, streams = model(modules.Listed())

        assert np.array_equal(served(x=X)["y"], X + 1)  # before the mark, the copy has 77
        assert streams.log == [
            ("copies", "staging of 24"),
            ("copies", "to device"),
            ("copies", "compute waits, for 1"),
            ("compute", "run"),
            ("compute", "results wait"),
            ("results", "to host"),
            ("results", "mark"),
            ("host", "done"),
        ]

    def test_several_requests_on_the_host_need_one_copy(self, model, modules):
        served, streams = model(modules.Listed(), BATCHES)

        found = served.together(*({"x": X + n} for n in range(4)))

        assert all(np.array_equal(each["y"], X + n + 1) for n, each in enumerate(found))
        assert streams.log[0] == ("copies", "staging of 96") and streams.count("to device") == 1

    def test_a_large_input_reaches_the_gpu_in_pieces(self, model, modules, monkeypatch):
        monkeypatch.setattr("backend_pytorch.pieces.PIECE", 40)
        monkeypatch.setattr("backend_pytorch.device_feed.LARGE", 96)
        served, streams = model(modules.Listed(), BATCHES)

        found = served.together(*({"x": X + n} for n in range(4)))

        assert all(np.array_equal(each["y"], X + n + 1) for n, each in enumerate(found))
        copies = [("copies", "to device")] * 3
        assert streams.log[:4] == [("copies", "staging of 96"), *copies]

    def test_an_input_on_the_gpu_is_not_copied(self, model, modules):
        served, streams = model(modules.Listed())
        array = streams.fake.array(X)

        (y,) = tensors(served, asked(array, STAYS))

        assert streams.given["x"].data_ptr() == array._held.ctypes.data
        assert isinstance(y.value, DeviceArray)
        assert streams.fake.copies == streams.count("to device") == streams.count("to host") == 0
        assert np.array_equal(y.array, X + 1)

    def test_a_program_that_writes_to_its_arguments_gets_a_copy_on_the_gpu(self, model, modules):
        served, streams = model(modules.InPlace())
        array = streams.fake.array(X)

        tensors(served, asked(array, STAYS))

        assert np.array_equal(array._held, X)
        assert streams.fake.copies == streams.count("to device") == 0

    @pytest.mark.parametrize("part", [np.s_[1:], np.s_[:, ::2]])
    def test_an_unaligned_or_strided_input_is_copied_on_the_gpu(self, model, modules, part):
        served, streams = model(modules.Listed(), dims="-1")
        array = streams.fake.array(X)[part]

        (y,) = tensors(served, asked(array))

        given = streams.given["x"]
        assert given.is_contiguous() and given.data_ptr() % 16 == 0
        assert streams.fake.copies == streams.count("to device") == 0
        assert np.array_equal(y.array, X[part] + 1)

    def test_an_input_of_another_gpu_is_copied_from_there(self, model, modules):
        served, streams = model(modules.Listed())
        other = FakeDevice(number=1)

        (y,) = tensors(served, asked(other.array(X)))

        assert streams.log[:2] == [("copies", "adopted"), ("copies", "across")]
        assert other.copies == 0 and np.array_equal(y.array, X + 1)

    @pytest.mark.parametrize("kind", [12, dlpack.ROCM])
    def test_an_input_of_another_kind_of_device_is_copied_through_the_host(
        self, model, modules, kind
    ):
        served, streams = model(modules.Listed())
        other = FakeDevice(kind)

        (y,) = tensors(served, asked(other.array(X)))

        assert other.copies == 1 and streams.count("to device") == 1
        assert np.array_equal(y.array, X + 1)

    def test_arrays_without_dlpack_are_copied_through_the_host(self, model, modules):
        class Shy:
            shape, dtype = X.shape, X.dtype

            def __dlpack__(self, **_):
                raise BufferError

            def __dlpack_device__(self):
                return dlpack.CUDA, 0

            def get(self):
                return X

        served, streams = model(modules.Listed())

        (y,) = tensors(served, asked(Shy()))

        assert streams.count("to device") == 1 and np.array_equal(y.array, X + 1)

    def test_requests_of_the_gpu_and_of_the_host_share_a_batch(self, model, modules):
        served, streams = model(modules.Listed(), BATCHES)
        on_gpu = [streams.fake.array(X + n) for n in (0, 3)]

        found = tensors(served, *map(asked, (on_gpu[0], X + 1, X + 2, on_gpu[1])))

        assert all(np.array_equal(y.array, X + n + 1) for n, y in enumerate(found))
        assert streams.count("run") == 1 and streams.fake.copies == 0
        assert streams.count("staging of 48") == streams.count("to device") == 1
        assert streams.count("adopted") == 2

    def test_bit_patterns_become_bf16(self, serve, io, modules, streams):
        ports = io("input", ("x", "BF16", 3)) + io("output", ("y", "BF16", 3))
        served = serve(modules.Listed(), ports + GROUP)
        patterns = np.array([0x3F80, 0x4000, 0x4040], np.uint16)  # 1, 2, 3
        array = streams[-1].fake.array(patterns)
        tensor = Tensor.of("x", array, dtypes.BF16)

        tensors(served, InferenceRequest("m", {"x": tensor}))

        assert streams[-1].given["x"].tolist() == [1, 2, 3]
        assert streams[-1].given["x"].dtype is torch.bfloat16


class TestOutputs:
    def test_each_request_of_a_batch_gets_its_rows_where_it_wants_them(self, model, modules):
        served, streams = model(modules.Listed(), BATCHES)

        here, there = tensors(served, asked(X), asked(X + 5, STAYS))

        assert here.device is None and there.device == streams.place
        assert streams.count("run") == streams.count("to host") == 1 and streams.fake.copies == 0
        assert np.array_equal(here.array, X + 1) and np.array_equal(there.array, X + 6)

    def test_an_answer_does_not_share_memory_with_an_input_of_another_owner(self, model, modules):
        served, streams = model(modules.Identity())
        array = streams.fake.array(X)

        (y,) = tensors(served, asked(array, STAYS))

        assert not np.shares_memory(y.value._held, array._held)
        assert np.array_equal(y.array, X)

    def test_an_output_on_the_gpu_is_independent_of_later_writes(self, model, modules):
        served, _ = model(modules.Counter(), "", dims="1")
        one = np.ones(1, np.float32)

        first = tensors(served, asked(one, STAYS))[0]
        second = tensors(served, asked(one))[0]

        assert (first.array.item(), second.array.item()) == (1, 2)

    def test_an_answer_on_the_gpu_is_split_by_request(self, model, modules):
        served, _ = model(modules.Listed(), BATCHES)

        found = tensors(served, *(asked(X[:n] * n, STAYS) for n in (1, 2)))

        assert [each.shape for each in found] == [(1, 3), (2, 3)]
        assert np.array_equal(found[1].array, 2 * X + 1)

    def test_shared_memory_of_a_client_on_the_gpu_is_filled_from_the_gpu(self, model, modules):
        served, streams = model(modules.Listed())
        region = Region()
        wanted = RequestedOutput("y", memory=CudaPlace(region, 4096, 24))

        tensors(served, asked(X, (wanted,)))

        assert region.filled == [(4096, 24)]
        assert streams.count("to host") == streams.fake.copies == 0

    def test_a_wrong_number_of_rows_is_an_error(self, model, modules):
        served, _ = model(modules.Flat())

        with pytest.raises(CoreError, match=r"shape \[6\] for a batch of 2 rows"):
            served(x=X)


class Region:
    """Shared memory of a client on a GPU."""

    def __init__(self):
        self.runtime = self
        self.filled = []
        self.status = type("Status", (), {"device_id": 0})

    def between(self, target, device, source, number, size):
        self.filled.append((target, size))


class TestOrder:
    def test_inputs_of_a_batch_are_copied_while_the_previous_one_computes(self, model, modules):
        served, streams = model(modules.Listed())
        streams.gate.clear()

        async def act():
            replies = [served.served._server.models.infer(asked(X + n)) for n in range(3)]
            while streams.count("run") < 2:
                await asyncio.sleep(0)
            assert streams.count("done") == 0 and streams.count("to device") == 2  # not three
            streams.gate.set()
            return [(await reply).output("y").array for reply in replies]

        found = served.served._call(act())

        assert all(np.array_equal(each, X + n + 1) for n, each in enumerate(found))

    def test_two_steps_of_an_ensemble_copy_at_both_ends_of_it_only(self, model, modules, tmp_path):
        served, streams = model(modules.Listed())
        folder = tmp_path / "models" / "twice"
        (folder / "1").mkdir(parents=True)
        steps = " ".join(
            f'step {{ model_name: "m" input_map {{ key: "x" value: "{a}" }} '
            f'output_map {{ key: "y" value: "{b}" }} }}'
            for a, b in (("x", "between"), ("between", "z"))
        )
        io = '{ name: "%s" data_type: TYPE_FP32 dims: [ 3 ] }'
        (folder / "config.pbtxt").write_text(
            f'platform: "ensemble" max_batch_size: 8 input [ {io % "x"} ] output [ {io % "z"} ] '
            f"ensemble_scheduling {{ {steps} }}"
        )
        served.served.load("twice")
        streams.log.clear()

        found = served.served.ask({"x": X}, name="twice")

        assert np.array_equal(found["z"], X + 2)
        assert streams.count("run") == 2 and streams.fake.copies == 0
        assert (
            streams.count("to device") == streams.count("adopted") == streams.count("to host") == 1
        )

    def test_states_stay_on_the_gpu(self, serve, io, modules, streams):
        served = serve(
            modules.Adding(),
            "max_batch_size: 4 sequence_batching { direct { } state [ { "
            'input_name: "total" output_name: "after" data_type: TYPE_FP32 dims: [ 1 ] } ] } '
            + io("input", ("x", "FP32", 1))
            + io("output", ("y", "FP32", 1))
            + GROUP,
        )
        (streams,) = streams

        found = [
            tensors(served, asked(np.full((1, 1), n, np.float32), correlation_id=4, flags=flags))
            for n, flags in ((1, SEQUENCE_START), (2, 0), (3, 0))
        ]

        assert [y.array.item() for (y,) in found] == [1, 3, 6]
        assert streams.count("to host") == 3 and streams.fake.copies == 0  # y, not the state
        assert streams.count("adopted") == 2  # the state of the previous request

    def test_text_is_on_the_host(self, serve, io, modules, streams):
        ports = io("input", ("words", "STRING", -1))
        ports += io("output", ("OUTPUT__0", "STRING", -1), ("OUTPUT__1", "INT64", -1))
        served = serve(modules.Upper(), ports + GROUP)

        found = served(words=np.array([b"one", b"three"], object))

        assert found["OUTPUT__0"].tolist() == [b"ONE", b"THREE"]
        assert found["OUTPUT__1"].tolist() == [3, 5]

    def test_outputs_of_a_ragged_batch_are_split_on_the_host(self, serve, io, modules, streams):
        served = serve(
            modules.Described(),
            BATCHES
            + io("input", ("x", "FP32", -1, "allow_ragged_batch: true"))
            + io("output", ("OUTPUT__0", "FP32", -1), ("OUTPUT__1", "FP32", 1))
            + 'batch_input [ { kind: BATCH_ELEMENT_COUNT target_name: "about" data_type: TYPE_FP32 '
            'source_input: "x" } ] '
            'batch_output [ { target_name: "OUTPUT__0" kind: BATCH_SCATTER_WITH_INPUT_SHAPE '
            'source_input: "x" } ] ' + GROUP,
        )
        a, b = np.array([[1, 2, 3]], np.float32), np.array([[4, 5]], np.float32)

        first, second = served.together({"x": a}, {"x": b})

        assert np.array_equal(first["OUTPUT__0"], 2 * a)
        assert np.array_equal(second["OUTPUT__0"], 2 * b)


class TestErrors:
    def test_a_failed_run_waits_for_the_device_and_does_not_affect_the_next_one(
        self, serve, io, modules, streams
    ):
        served = serve(
            modules.Pick(),
            "max_batch_size: 8 "
            + io("input", ("x", "FP32", 3), ("index", "INT64", 1))
            + io("output", ("OUTPUT__0", "FP32", 3), ("OUTPUT__1", "FP32", 1))
            + GROUP,
        )
        index = np.zeros((2, 1), np.int64)

        with pytest.raises(CoreError, match="index 9 is out of bounds"):
            served(x=X, index=index + 9)

        assert streams[-1].log[-1][1] == "settled"
        assert np.array_equal(served(x=X, index=index)["OUTPUT__0"], 2 * X)

    def test_an_error_of_the_device_takes_the_instance_out_of_service(self, model, modules):
        served, streams = model(modules.Listed())
        streams.breaks = RuntimeError("CUDA error: an illegal memory access was encountered")

        with pytest.raises(CoreError, match="leaves service"):
            served(x=X)
        streams.breaks = None
        with pytest.raises(CoreError):
            served(x=X)
