"""Requests: sync and async, decoupled, refused, failed, cancelled, with every field."""

import asyncio
import pickle
import queue
import threading
import time

import numpy as np
import pytest
import tritonserver
from tritonserver import DataType, MemoryBuffer, MemoryType, Tensor

import core

torch = pytest.importorskip("torch")
X = np.array([1, 2, 3], np.float32)


def only(responses):
    (response,) = list(responses)
    return response


def test_a_request_gives_one_final_response(server):
    response = only(server.model("identity").infer(inputs={"INPUT0": X}, request_id="mine"))

    np.testing.assert_array_equal(np.from_dlpack(response.outputs["OUTPUT0"]), X)
    assert response.final and response.error is None
    assert response.request_id == "mine"
    assert (response.model.name, response.model.version) == ("identity", 1)


@pytest.mark.parametrize(
    "value",
    [
        X,
        Tensor.from_dlpack(X),
        torch.tensor([1.0, 2.0, 3.0]),
        np.arange(6, dtype=np.float32)[1::2] / 2 + 0.5,
        X.astype(">f4"),
    ],
    ids=["numpy", "tensor", "torch", "with gaps", "other byte order"],
)
def test_inputs_of_many_libraries_are_taken(server, value):
    response = only(server.model("identity").infer(inputs={"INPUT0": value}))

    np.testing.assert_array_equal(np.from_dlpack(response.outputs["OUTPUT0"]), X)


def test_a_request_object_can_be_filled_and_sent_twice(server):
    request = server.model("identity").create_request(request_id="r")
    request.inputs["INPUT0"] = X

    found = [only(server.model("identity").infer(request)) for _ in range(2)]

    assert [each.request_id for each in found] == ["r", "r"]
    assert tritonserver.InferenceRequest(server.model("identity")).inputs == {}


def test_text_goes_in_and_out(server):
    for given in (["a", "é"], np.array([b"a", "é".encode()]), Tensor.from_string_array(["a", "é"])):
        response = only(server.model("text").infer(inputs={"INPUT0": given}))

        assert response.outputs["OUTPUT0"].to_string_array().tolist() == ["a", "é"]


def test_bfloat16_goes_in_and_out(server):
    values = torch.tensor([1.5, -2.0], dtype=torch.bfloat16)

    response = only(server.model("bits").infer(inputs={"INPUT0": values}))

    assert response.outputs["OUTPUT0"].data_type is DataType.BF16
    assert torch.equal(torch.from_dlpack(response.outputs["OUTPUT0"]), values)


def test_an_output_may_be_changed_and_the_input_stays(server):
    given = np.ones(3, np.float32)
    response = only(server.model("identity").infer(inputs={"INPUT0": given}))

    torch.from_dlpack(response.outputs["OUTPUT0"]).zero_()

    assert given.tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    "model, inputs, kind, said",
    [
        ("none", {"INPUT0": X}, tritonserver.NotFoundError, "none"),
        ("identity", {}, tritonserver.InvalidArgumentError, "expected 1 inputs but got 0"),
        ("identity", {"Z": X}, tritonserver.InvalidArgumentError, "INPUT0"),
        ("identity", {"INPUT0": X.astype(int)}, tritonserver.InvalidArgumentError, "INT64"),
        (
            "batches",
            {"INPUT0": np.zeros((9, 1), np.float32)},
            tritonserver.InvalidArgumentError,
            "8",
        ),
    ],
)
def test_a_refused_request_raises_at_once(server, model, inputs, kind, said):
    with pytest.raises(kind, match=said):
        server.model(model).infer(inputs=inputs)

    async def ask():
        server.model(model).async_infer(inputs=inputs)

    with pytest.raises(kind, match=said):
        asyncio.run(ask())


def test_a_version_that_does_not_exist_is_not_found(server):
    with pytest.raises(tritonserver.NotFoundError, match="7"):
        server.model("identity", 7).infer(inputs={"INPUT0": X})


@pytest.mark.parametrize(
    "tensor, said",
    [
        (Tensor(DataType.FP32, [4], MemoryBuffer.from_dlpack(X)), "expected 16"),
        (Tensor(DataType.BYTES, [3], MemoryBuffer.from_dlpack(X)), "expected 3"),
        (Tensor(DataType.INVALID, [3], MemoryBuffer.from_dlpack(X)), "INVALID"),
    ],
)
def test_memory_that_does_not_fit_the_shape_is_refused(server, tensor, said):
    with pytest.raises(tritonserver.InvalidArgumentError, match=said):
        server.model("identity").infer(inputs={"INPUT0": tensor})


@pytest.mark.parametrize("value", [{"a": 1}, None, b"bytes"])
def test_a_parameter_of_another_type_is_refused(server, value):
    with pytest.raises(tritonserver.InvalidArgumentError, match="parameter 'p'"):
        server.model("identity").infer(inputs={"INPUT0": X}, parameters={"p": value})


def test_a_decoupled_model_gives_several_responses_and_an_empty_final_one(server):
    model = server.model("square")

    found = list(model.infer(inputs={"IN": np.array([3], np.int32)}))

    values = [int(np.from_dlpack(each.outputs["OUT"])[0]) for each in found if each.outputs]
    assert values == [3, 3, 3]
    assert [each.final for each in found[:-1]] == [False] * (len(found) - 1)
    assert found[-1].final
    assert model.transaction_properties() is tritonserver.ModelTxnPropertyFlag.DECOUPLED


def test_an_error_of_a_response_is_raised_or_returned(server):
    inputs = {"IN": np.array([-1], np.int32)}

    with pytest.raises(tritonserver.TritonError) as raised:
        list(server.model("square").infer(inputs=inputs))
    returned = list(server.model("square").infer(inputs=inputs, raise_on_error=False))

    assert isinstance(raised.value.args[1], tritonserver.InferenceResponse)
    errors = [each.error for each in returned if each.error is not None]
    assert [str(each) for each in errors] == [str(raised.value)]


def test_an_error_with_a_response_passes_to_another_process(server):
    with pytest.raises(tritonserver.TritonError) as raised:
        list(server.model("square").infer(inputs={"IN": np.array([-1], np.int32)}))

    copy = pickle.loads(pickle.dumps(raised.value))

    assert type(copy) is type(raised.value) and str(copy) == str(raised.value)


async def test_async_requests_run_concurrently(server):
    async def ask(number):
        stream = server.model("batches").async_infer(
            inputs={"INPUT0": np.full((1, 2), number, np.float32)}
        )
        return [float(np.from_dlpack(each.outputs["OUTPUT0"])[0, 0]) async for each in stream]

    found = await asyncio.gather(*(ask(i) for i in range(20)))

    assert found == [[float(i)] for i in range(20)]


async def test_an_async_stream_ends_with_its_final_response(server):
    stream = server.model("square").async_infer(inputs={"IN": np.array([2], np.int32)})

    found = [each async for each in stream]

    assert sum(bool(each.outputs) for each in found) == 2
    assert found[-1].final


def test_an_async_request_may_begin_outside_of_the_loop_that_reads_it(server):
    stream = server.model("identity").async_infer(inputs={"INPUT0": X})

    async def read():
        return [each.final async for each in stream]

    assert asyncio.run(read()) == [True]


def test_requests_of_many_threads_do_not_mix(server):
    wrong = []

    def ask(number):
        for _ in range(20):
            response = only(
                server.model("batches").infer(
                    inputs={"INPUT0": np.full((2, 3), number, np.float32)}
                )
            )
            if not (np.from_dlpack(response.outputs["OUTPUT0"]) == number).all():
                wrong.append(number)

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert wrong == []


def test_a_queue_gets_responses_that_the_iterator_gives_too(server):
    user = queue.SimpleQueue()
    streams = [
        server.model("square").infer(inputs={"IN": np.array([1], np.int32)}, response_queue=user)
        for _ in range(2)
    ]

    finals = 0
    queued = []
    while finals < 2:
        queued.append(user.get(timeout=5))
        finals += queued[-1].final

    assert sum(bool(each.outputs) for each in queued) == 2
    assert [sum(bool(each.outputs) for each in stream) for stream in streams] == [1, 1]
    assert user.empty()


async def test_an_asyncio_queue_gets_the_responses_too(server):
    user = asyncio.Queue()
    stream = server.model("identity").async_infer(inputs={"INPUT0": X}, response_queue=user)

    queued = await asyncio.wait_for(user.get(), 5)

    assert queued.final and [each async for each in stream] == [queued]


def test_a_request_can_be_cancelled(server):
    first = server.model("slow").infer(inputs={"INPUT0": X})
    waiting = server.model("slow").infer(inputs={"INPUT0": X})
    begin = time.monotonic()

    waiting.cancel()
    first.cancel()  # of a model that runs: this one ends its delay and responds

    with pytest.raises(tritonserver.TritonError, match="cancel"):
        list(waiting)
    assert len(list(first)) == 1
    assert time.monotonic() - begin < 1.5


def test_an_iterator_that_is_dropped_does_not_cancel_the_request(server):
    def count():
        stats = server.model("identity").statistics()["model_stats"][0]
        return stats["inference_stats"]["success"]["count"]

    before = count()
    server.model("identity").infer(inputs={"INPUT0": X})

    end = time.monotonic() + 5
    while count() == before and time.monotonic() < end:
        time.sleep(0.01)
    assert count() == before + 1


def test_correlation_priority_flags_and_timeout_reach_the_model(server, monkeypatch):
    seen = []
    inner = server._embedded._inner.models
    whole = inner.infer

    def infer(request):
        seen.append(request)
        return whole(request)

    monkeypatch.setattr(inner, "infer", infer)
    only(
        server.model("identity", 1).infer(
            inputs={"INPUT0": X},
            correlation_id="s",
            priority=2,
            timeout=5_000_000,
            flags=3,
            parameters={"a": 1, "b": 0.5, "c": True, "d": "x"},
        )
    )

    (request,) = seen
    assert (request.correlation_id, request.flags, request.priority) == ("s", 3, 2)
    assert (request.timeout_us, request.model_version) == (5_000_000, 1)
    assert request.parameters == {"a": 1, "b": 0.5, "c": True, "d": "x"}


def test_the_best_classes_of_an_output_are_text(server):
    response = only(
        server.model("labelled").infer(
            inputs={"INPUT0": X},
            requested_outputs=[core.RequestedOutput("OUTPUT0", class_count=2)],
        )
    )

    texts = response.outputs["OUTPUT0"].to_string_array().tolist()
    assert [each.split(":")[1:] for each in texts] == [["2", "two"], ["1", "one"]]


def test_an_allocator_gives_the_memory_of_outputs(server):
    class Recorder(tritonserver.MemoryAllocator):
        def __init__(self):
            self.calls = []

        def allocate(self, size, memory_type, memory_type_id, tensor_name):
            self.calls.append((size, memory_type, memory_type_id, tensor_name))
            self.array = np.zeros(100, np.uint8)
            return MemoryBuffer.from_dlpack(self.array)

    allocator = Recorder()
    response = only(
        server.model("identity").infer(inputs={"INPUT0": X}, output_memory_allocator=allocator)
    )

    tensor = response.outputs["OUTPUT0"]
    assert allocator.calls == [(12, MemoryType.CPU, 0, "OUTPUT0")]
    assert tensor.data_ptr == allocator.array.ctypes.data and tensor.size == 12
    np.testing.assert_array_equal(np.from_dlpack(tensor), X)


def test_a_default_allocator_can_be_replaced(server, monkeypatch):
    class Own(tritonserver.MemoryAllocator):
        def allocate(self, size, memory_type, memory_type_id, tensor_name):
            return MemoryBuffer.from_dlpack(np.zeros(size, np.uint8))

    monkeypatch.setitem(tritonserver.default_memory_allocators, MemoryType.CPU, Own())

    response = only(server.model("identity").infer(inputs={"INPUT0": X}, output_memory_type="cpu"))

    assert response.outputs["OUTPUT0"].memory_buffer.owner.dtype == np.uint8
    np.testing.assert_array_equal(np.from_dlpack(response.outputs["OUTPUT0"]), X)


def test_an_allocator_that_gives_too_little_is_an_error_of_the_response(server):
    class Small(tritonserver.MemoryAllocator):
        def allocate(self, size, memory_type, memory_type_id, tensor_name):
            return MemoryBuffer.from_dlpack(np.zeros(1, np.uint8))

    stream = server.model("identity").infer(
        inputs={"INPUT0": X}, output_memory_allocator=Small(), raise_on_error=False
    )

    assert "at least 12 bytes" in str(only(stream).error)


def test_an_unknown_memory_type_is_an_error_of_the_response(server):
    with pytest.raises(tritonserver.InvalidArgumentError, match="tpu"):
        only(server.model("identity").infer(inputs={"INPUT0": X}, output_memory_type="tpu"))


def test_thousands_of_requests_leave_no_memory_behind(server):
    import gc
    import tracemalloc

    model = server.model("identity")

    def grown(requests):
        gc.collect()
        begin = tracemalloc.get_traced_memory()[0]
        for _ in range(requests):
            only(model.infer(inputs={"INPUT0": X}))
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - begin

    tracemalloc.start()
    try:
        grown(500)  # caches fill
        assert grown(4000) < 40_000  # 10 bytes a request: one object that stays has more
    finally:
        tracemalloc.stop()


def test_a_queue_gets_the_response_of_an_iterator_that_is_dropped(server):
    user = queue.SimpleQueue()

    server.model("slow").infer(inputs={"INPUT0": X}, response_queue=user)

    assert user.get(timeout=30).final
