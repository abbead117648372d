"""Batches through the server, on a fake GPU: copies, profiles, answers, outputs that stay on the device."""

import threading

import numpy as np
import pytest
from core_testing.fake_device import FakeDevice
from core_testing.served import request_of

import core
from core import dtypes
from core.devices import dlpack
from core.errors import CoreError
from core.request import DeviceOutput

X = np.arange(6, dtype=np.float32).reshape(2, 3)
TOGETHER = "dynamic_batching {{ max_queue_delay_microseconds: 200000 preferred_batch_size: {} }}"


def ask(served, x=X):
    return served.ask({"x": x}, (), "m")["y"]


def test_a_request_is_answered(serve, twice):
    assert np.array_equal(ask(serve()), 2 * X)


def test_requests_share_a_batch_and_get_their_rows(serve, twice):
    served = serve(TOGETHER.format(5))

    found = served.together([{"x": X}, {"x": X + 1}, {"x": X[:1]}], (), "m")

    assert served.executions("m") == 1
    assert [each["y"].tolist() for each in found] == [
        (2 * each).tolist() for each in (X, X + 1, X[:1])
    ]


@pytest.mark.parametrize(
    "how",
    [
        "",
        "optimization { cuda { output_copy_stream: true } }",
        "optimization { eager_batching: true }",
        "optimization { input_pinned_memory { enable: false } output_pinned_memory { enable: false } }",
        "optimization { cuda { graphs: true } }",
        "instance_group [ { kind: KIND_GPU count: 2 } ]",
    ],
)
@pytest.mark.parametrize("policy", ["DEVICE_BLOCKING", "BLOCKING"])
def test_many_batches_follow_each_other(serve, twice, how, policy):
    served = serve(f"dynamic_batching {{ }} max_batch_size: 2 {how}", {"execution-policy": policy})
    inputs = [X + i for i in range(20)]

    found = served.together([{"x": each} for each in inputs], (), "m")

    assert all(np.array_equal(a["y"], 2 * x) for a, x in zip(found, inputs, strict=True))
    assert served.executions("m") == 20


@pytest.mark.parametrize(("eager", "ahead"), [("false", 2), ("true", 3)])
def test_inputs_of_the_next_batches_are_copied_while_one_computes(serve, fake, port, eager, ahead):
    """The first batch does not finish before the copies of the others' inputs have started."""
    given, waits = [], threading.Event()

    def slow(x):
        assert waits.wait(30)
        return {"y": 2 * x}

    fake.engine([port("x", ((1, 3), (1, 3), (2, 3))), port("y", dims=(-1, 3))], slow)
    real = fake.cuda.to_device

    def to_device(*what):
        given.append(what)
        if len(given) == ahead:
            waits.set()
        real(*what)

    fake.cuda.to_device = to_device
    served = serve(f"max_batch_size: 2 optimization {{ eager_batching: {eager} }}")

    found = served.together([{"x": X + i} for i in range(5)], (), "m")

    assert [each["y"].tolist() for each in found] == [(2 * (X + i)).tolist() for i in range(5)]


def test_an_input_is_gathered_in_pinned_memory_and_copied_once(serve, twice, fake):
    served = serve(TOGETHER.format(5))

    served.together([{"x": X}, {"x": X[:1]}, {"x": X}], (), "m")

    assert [what for _, what in fake.cuda.history if "to_" in what] == [
        "to_device 60",
        "to_host 60",
    ]
    assert fake.cuda.pinned_sizes == [60, 60]


def test_adjacent_requests_are_copied_directly(serve, twice, fake):
    served = serve(TOGETHER.format(4), {"coalesce-request-input": "true"})
    region = np.concatenate([X, X + 1])
    requests = [request_of({"x": each}, (), "m") for each in (X, X)]
    for i, request in enumerate(requests):
        raw = memoryview(region).cast("B")[24 * i : 24 * i + 24]
        request.inputs["x"] = core.Tensor("x", dtypes.FP32, (2, 3), raw=raw)

    found = served.send(requests)

    assert [each["y"].tolist() for each in found] == [(2 * X).tolist(), (2 * X + 2).tolist()]
    assert fake.cuda.pinned_sizes == [48]  # of the outputs: no input was gathered


def test_each_batch_uses_the_nearest_profile_of_its_instance(serve, fake, port):
    bounds = (((1, 3), (1, 3), (2, 3)), ((1, 3), (8, 3), (8, 3)), ((1, 3), (4, 3), (8, 3)))
    engine = fake.engine([port("x", *bounds), port("y", dims=(-1, 3))], lambda x: {"y": 2 * x})
    served = serve('instance_group [ { kind: KIND_GPU count: 1 profile: [ "0", "2" ] } ]')

    for rows in (1, 2, 4, 5, 8):
        assert np.array_equal(ask(served, np.ones((rows, 3), np.float32)), np.full((rows, 3), 2))

    assert {each.profile: each.runs for each in engine.contexts} == {0: 2, 2: 3}


def test_an_error_for_a_batch_outside_of_the_profiles_has_both_shapes(serve, fake, port):
    bounds = ((1, 2), (4, 2), (8, 4))
    fake.engine([port("x", bounds), port("y", dims=(-1, -1))], lambda x: {"y": 2 * x})
    served = serve()

    with pytest.raises(CoreError) as error:
        ask(served, np.ones((2, 5), np.float32))

    assert "profile 0 takes [1, 2] to [8, 4] for the shape of input 'x', which is [2, 5]" in str(
        error.value
    )
    assert np.array_equal(ask(served, np.ones((2, 4), np.float32)), np.full((2, 4), 2))


def test_an_output_whose_shape_depends_on_values(serve, fake, port):
    ports = [port("x", ((1,), (8,), (64,))), port("y", kind="INT64", dims=(-1,))]
    fake.engine(
        ports,
        lambda x: {"y": np.flatnonzero(x)},
        shapes={"y": lambda shapes, values: (-1,)},
    )
    served = serve(
        "max_batch_size: 0 input { name: 'x' dims: -1 data_type: TYPE_FP32 } output { name: 'y' dims: -1 }"
    )

    for x in ([0, 1, 0, 2], [0, 0], [3] * 40):
        found = served.ask({"x": np.array(x, np.float32)}, (), "m")["y"]
        assert found.tolist() == np.flatnonzero(x).tolist()


def test_a_shape_tensor_gets_the_batch_as_its_first_value(serve, fake, port):
    ports = [
        port("x", ((1, 3), (4, 3), (8, 3))),
        port(
            "size",
            ((2,), (2,), (2,)),
            kind="INT32",
            on_host=True,
            values=[((1, 1), (4, 2), (8, 9))],
        ),
        port("y", dims=(-1, -1)),
        port("seen", kind="INT32", on_host=True, dims=(2,)),
    ]
    engine = fake.engine(
        ports,
        lambda x, size: {"y": np.full(size, x.sum()), "seen": size},
        shapes={"y": lambda shapes, values: tuple(values["size"]), "seen": lambda *_: (2,)},
    )
    served = serve(TOGETHER.format(4))
    size = np.array([5], np.int32)

    found = served.together([{"x": X, "size": size}, {"x": X, "size": size}], (), "m")

    assert engine.contexts[0].runs == 1
    for each in found:
        assert each["y"].tolist() == [[30.0] * 5] * 2
        assert each["seen"].tolist() == [5]
    with pytest.raises(
        CoreError, match=r"profile 0 takes \[1, 1\] to \[8, 9\] for the values of input 'size'"
    ):
        served.ask({"x": X, "size": np.array([10], np.int32)}, (), "m")


def test_clients_see_a_scalar_as_one_element(serve, fake, port):
    ports = [port("x", ((), (), ())), port("y", dims=())]
    fake.engine(ports, lambda x: {"y": x + 1}, shapes={"y": lambda *_: ()})

    assert served_value(serve(), np.array([2], np.float32)) == [3]


def served_value(served, x):
    return ask(served, x).tolist()


def test_an_empty_tensor(serve, fake, port):
    fake.engine([port("x", ((1, 0), (4, 3), (8, 3))), port("y", dims=(-1, -1))], lambda x: {"y": x})

    assert ask(serve("max_batch_size: 8"), np.empty((2, 0), np.float32)).shape == (2, 0)


@pytest.mark.parametrize("kind", ["HALF", "BF16", "INT8", "INT32", "INT64", "BOOL", "UINT8", "FP8"])
def test_datatypes(serve, fake, port, kind):
    ports = [port("x", ((1, 3), (4, 3), (8, 3)), kind=kind), port("y", kind=kind, dims=(-1, 3))]
    fake.engine(ports, lambda x: {"y": x})
    served = serve()
    tensor = core.Tensor.of("x", X.astype(ports[0].dtype.numpy), ports[0].dtype)
    request = request_of({"x": X}, (), "m")
    request.inputs["x"] = core.Tensor("x", tensor.dtype, tensor.shape, raw=bytes(tensor.raw))

    (found,) = served.send([request])

    assert np.array_equal(found["y"], tensor.array)
    assert served.config("m").input[0].data_type == ports[0].dtype.number


class TestArraysOnTheDevice:
    """Inputs are read on the GPU, and outputs stay there."""

    def send(self, served, *tensors, outputs=()):
        requests = []
        for tensor in tensors:
            request = request_of({"x": X}, (), "m")
            request.inputs["x"] = core.Tensor.of("x", tensor)
            request.outputs = tuple(outputs)
            requests.append(request)
        return served.send(requests)

    def test_an_aligned_input_is_not_copied(self, serve, twice, fake):
        served = serve()
        memory = fake.cuda.memory(X.nbytes, None)
        place = FakeDevice(dlpack.CUDA)
        array = place.array(X)
        array._held = aligned(memory, X)

        (found,) = self.send(served, array)

        assert np.array_equal(found["y"], 2 * X)
        assert not [
            what for _, what in fake.cuda.history if "to_device" in what or "within" in what
        ]
        assert place.copies == 0

    def test_requests_of_host_and_device_share_a_batch(self, serve, twice, fake):
        served = serve(TOGETHER.format(4))
        place = FakeDevice(dlpack.CUDA)

        found = self.send(served, X, place.array(X + 1))

        assert [each["y"].tolist() for each in found] == [(2 * X).tolist(), (2 * X + 2).tolist()]
        assert served.executions("m") == 1 and place.copies == 0
        assert {"within 24", "to_device 24"} <= {what for _, what in fake.cuda.history}

    def test_an_input_of_another_gpu_is_copied_through_the_host(self, serve, twice, fake):
        place = FakeDevice(dlpack.CUDA, 1)

        (found,) = self.send(serve(), place.array(X))

        assert np.array_equal(found["y"], 2 * X) and place.copies == 1

    @pytest.mark.parametrize("graphs", ["", "optimization { cuda { graphs: true } }"])
    def test_an_output_stays_if_a_request_takes_it_there(self, tmp_path, twice, fake, graphs):
        (tmp_path / "m" / "1").mkdir(parents=True)
        (tmp_path / "m" / "1" / "model.plan").write_bytes(b"engine")
        (tmp_path / "m" / "config.pbtxt").write_text('backend: "tensorrt" ' + graphs)
        with core.Server(model_repository=str(tmp_path)) as server:
            found = server.infer("m", {"x": X}, outputs=[DeviceOutput("y")])
            kept = found["y"]

            assert kept.__dlpack_device__() == (dlpack.CUDA, 0) and kept.shape == (2, 3)
            assert not [what for _, what in fake.cuda.history if "to_host" in what]
            assert np.array_equal(server.infer("m", {"x": X + 1})["y"], 2 * X + 2)
            assert np.array_equal(found.tensor("y").array, 2 * X)

    def test_rows_of_a_batch_stay_on_the_device(self, serve, twice):
        found = self.send(serve(TOGETHER.format(4)), X, X + 1, outputs=[DeviceOutput("y")])

        assert [each["y"].tolist() for each in found] == [(2 * X).tolist(), (2 * X + 2).tolist()]


def aligned(memory, array):
    """Return a copy of an array in fake memory with the alignment of TensorRT."""
    offset = memory.ptr - memory.array.ctypes.data
    held = memory.array[offset : offset + array.nbytes].view(array.dtype).reshape(array.shape)
    held[:] = array
    return held


def test_states_of_sequences_are_fed_and_kept(serve, fake, port):
    ports = [port("x", ROWS), port("old", ROWS), port("y", dims=(-1, 3)), port("new", dims=(-1, 3))]
    fake.engine(ports, lambda x, old: {"y": 2 * (x + old), "new": x + old})
    served = serve(
        'sequence_batching { state { input_name: "old" output_name: "new" data_type: TYPE_FP32 dims: 3 } }'
    )
    found = []
    for flags in (1, 0, 2):  # start, none, end
        request = request_of({"x": X[:1]}, ("y",), "m")
        request.correlation_id, request.flags = 7, flags
        found += served.send([request])

    assert [each["y"].tolist() for each in found] == [(2 * n * X[:1]).tolist() for n in (1, 2, 3)]
    assert [io.name for io in served.config("m").input] == ["x"]


ROWS = ((1, 3), (4, 3), (8, 3))


def test_ragged_requests_share_a_batch(serve, fake, port):
    ports = [
        port("x", ((1,), (8,), (64,))),
        port("ends", ((1,), (4,), (8,)), kind="INT32"),
        port("y", dims=(-1,)),
    ]
    fake.engine(ports, lambda x, ends: {"y": x + ends[-1]}, shapes={"y": lambda s, v: s["x"]})
    served = serve(
        TOGETHER.format(2)
        + """max_batch_size: 8
        input { name: "x" data_type: TYPE_FP32 dims: -1 allow_ragged_batch: true }
        output { name: "y" data_type: TYPE_FP32 dims: -1 }
        batch_input { kind: BATCH_ACCUMULATED_ELEMENT_COUNT target_name: "ends" data_type: TYPE_INT32
                      source_input: "x" }
        batch_output { target_name: "y" kind: BATCH_SCATTER_WITH_INPUT_SHAPE source_input: "x" }"""
    )

    a, b = served.together([{"x": X[:1]}, {"x": np.ones((1, 5), np.float32)}], (), "m")

    assert a["y"].tolist() == (X[:1] + 8).tolist() and b["y"].tolist() == [[9.0] * 5]
