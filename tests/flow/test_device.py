"""Arrays on devices on their way between models: where they stay, and when they are copied to the host."""

import asyncio
import gc

import numpy as np
import pytest
from core_testing.fake_device import DeviceArray
from flow.devices import BATCHING, asked, rows

from core.caches.local import LocalCache
from core.errors import CoreError, Kind
from core.request import DeviceOutput, RequestedOutput
from core.tensor import Tensor

KEPT = (DeviceOutput("y"),)


async def test_a_client_gets_a_device_output_in_host_memory_with_one_copy(serve, fake):
    chain = await serve(fake.instance())

    response = await chain.handler(asked(rows(1)))
    tensor = response.output("y")

    assert type(tensor) is Tensor and tensor.device is None
    assert np.array_equal(tensor.array, rows(2))
    assert bytes(tensor.raw) == rows(2).tobytes()
    assert fake.place.copies == 1


async def test_a_host_copy_does_not_keep_device_memory(serve, fake):
    chain = await serve(fake.instance())

    response = await chain.handler(asked(rows(1)))
    fake.given.clear()
    gc.collect()

    assert fake.place.alive == 0 and response.output("y").array[0, 0] == 2


async def test_an_output_stays_on_its_device_if_requested(serve, fake):
    chain = await serve(fake.instance())

    tensor = (await chain.handler(asked(rows(1), KEPT))).output("y")

    assert isinstance(tensor.value, DeviceArray) and tensor.device == (2, 0)
    assert fake.place.copies == 0


async def test_a_requested_host_copy_exists_before_the_response(serve, fake):
    chain = await serve(fake.instance())

    tensor = (await chain.handler(asked(rows(1), (DeviceOutput("y", host=True),)))).output("y")

    assert isinstance(tensor.value, DeviceArray) and tensor.memory._host is not None
    assert fake.place.copies == 1


async def test_an_input_on_a_device_is_the_producers_array(serve, fake):
    chain = await serve(fake.instance())
    array = fake.place.array(rows(1))

    await chain.handler(asked(array, KEPT))

    assert fake.given == [array] and fake.given[0] is array
    assert fake.place.copies == 0


async def test_an_instance_that_takes_host_memory_gets_numpy_by_one_copy(serve, fake):
    chain = await serve(fake.instance(memory="host"))

    await chain.handler(asked(fake.place.array(rows(1)), KEPT))

    assert type(fake.given[0]) is np.ndarray
    assert fake.place.copies == 1


async def test_host_inputs_of_an_instance_with_device_memory_are_numpy(serve, fake):
    chain = await serve(fake.instance())

    await chain.handler(asked(rows(1)))

    assert type(fake.given[0]) is np.ndarray


async def ask_together(chain, requests):
    return await asyncio.gather(*(chain.handler(request) for request in requests))


async def test_rows_of_several_requests_are_gathered_and_split_on_the_device(serve, fake):
    chain = await serve(fake.instance(), BATCHING)
    values = [(1,), (2, 3), (4,)]

    answers = await ask_together(
        chain, [asked(fake.place.array(rows(*each)), KEPT) for each in values]
    )

    assert [kinds for _, kinds in fake.gathered] == [[DeviceArray] * 3]
    for each, answer in zip(values, answers, strict=True):
        tensor = answer.output("y")
        assert tensor.shape == (len(each), 2) and tensor.value.shape == (len(each), 2)
    assert fake.place.copies == 0
    for each, answer in zip(values, answers, strict=True):
        assert np.array_equal(answer.output("y").array, rows(*each) + 1)
    assert fake.place.copies == 1  # of the whole, for all rows


async def test_host_and_device_requests_of_one_batch_do_not_mix_their_rows(serve, fake):
    chain = await serve(fake.instance(), BATCHING)
    requests = [asked(rows(1)), asked(fake.place.array(rows(2, 3)), KEPT), asked(rows(4), KEPT)]

    answers = await ask_together(chain, requests)

    assert fake.gathered == [("x", [np.ndarray, DeviceArray, np.ndarray])]
    found = [answer.output("y") for answer in answers]
    assert [tensor.device for tensor in found] == [None, (2, 0), (2, 0)]
    assert [tensor.array[:, 0].tolist() for tensor in found] == [[2], [3, 4], [5]]
    assert fake.place.copies == 1


async def test_without_a_way_to_gather_the_batch_is_made_on_the_host(serve, fake):
    chain = await serve(fake.instance(gathers=False), BATCHING)

    answers = await ask_together(
        chain, [asked(fake.place.array(rows(1))), asked(fake.place.array(rows(2)))]
    )

    assert type(fake.given[0]) is np.ndarray and fake.given[0].tolist() == rows(1, 2).tolist()
    assert [a.output("y").array[0, 0] for a in answers] == [2, 3]


async def test_each_request_of_a_batch_has_its_own_array(serve, fake):
    seen = []

    class Looks(fake.instance()):
        def execute(self, batch):
            seen.extend(request.inputs["x"].value for request in batch.requests)
            return super().execute(batch)

    chain = await serve(Looks, BATCHING)
    first, second = fake.place.array(rows(1)), fake.place.array(rows(2))

    await ask_together(chain, [asked(first), asked(second)])

    assert seen[0] is first and seen[1] is second


async def test_inputs_that_cannot_be_gathered_fail_only_their_batch(serve, fake):
    class Refuses(fake.instance()):
        def gather(self, name, arrays):
            raise ValueError(f"{name}: arrays of several devices")

    chain = await serve(Refuses, BATCHING)
    requests = [asked(fake.place.array(rows(1))), asked(fake.place.array(rows(2)))]

    with pytest.raises(CoreError, match="x: arrays of several devices"):
        await ask_together(chain, requests)

    assert (await chain.handler(asked(rows(3)))).output("y").array[0, 0] == 4


async def test_wrong_outputs_on_a_device_are_refused_like_host_outputs(serve, fake):
    class Wrong(fake.instance()):
        def execute(self, batch):
            return self.model.recorder.answers.pop(0)

    chain = await serve(Wrong)
    place = fake.place
    chain.recorder.answers = [
        {"y": place.array(rows(1, 2))},
        {"y": place.array(rows(1).astype(np.int64))},
        {"z": place.array(rows(1))},
    ]

    for text in (r"shape \[2, 2\] for a batch of 1 rows", "'y' as INT64", "unexpected .* 'z'"):
        with pytest.raises(CoreError, match=text):
            await chain.handler(asked(rows(1)))


async def test_a_failed_copy_is_the_error_of_the_request_that_needs_it(serve, fake):
    class Lost(DeviceArray):
        def get(self):
            raise OSError("device lost")

    class Instance(fake.instance()):
        def execute(self, batch):
            return {"y": Lost(fake.place, rows(1))}

    chain = await serve(Instance)

    with pytest.raises(CoreError, match=r"tensor 'y' is on device .*device lost") as found:
        await chain.handler(asked(rows(1)))

    assert found.value.kind is Kind.INTERNAL
    assert (await chain.handler(asked(rows(1), KEPT))).output("y").device == (2, 0)


async def test_classes_and_memory_of_clients_are_made_of_the_copy(serve, fake):
    chain = await serve(fake.instance())
    memory = bytearray(8)
    placed = RequestedOutput("y", memory=memoryview(memory))

    classes = await chain.handler(asked(rows(1), (RequestedOutput("y", class_count=1),)))
    await chain.handler(asked(rows(1), (placed,)))

    assert classes.output("y").array.tolist() == [[b"2.000000:0"]]
    assert memory == rows(2).tobytes()
    assert fake.place.copies == 2


async def test_the_cache_stores_host_memory_and_the_client_gets_the_device_array(serve, fake):
    cache = LocalCache(1 << 20)
    chain = await serve(fake.instance(), "response_cache { enable: true }", cache=cache)

    first = (await chain.handler(asked(rows(1), KEPT))).output("y")
    again = (await chain.handler(asked(rows(1), KEPT))).output("y")

    assert isinstance(first.value, DeviceArray) and type(again) is Tensor
    assert np.array_equal(again.array, rows(2))
    assert fake.place.copies == 1 and len(fake.given) == 1


STATE = """state [ { input_name: "s" output_name: "t" data_type: TYPE_FP32
           dims: [ 2 ] initial_state { name: "s" data_type: TYPE_FP32 dims: [ 2 ] zero_data: true } } ]"""


def sums(fake, seen):
    """Return instances that add x to a state; `seen` gets the types of the state."""

    class Sums(fake.instance()):
        def gather(self, name, arrays):
            return NotImplemented  # numpy

        def execute(self, batch):
            state = batch["s"]
            seen.append(type(state))
            held = state._held if isinstance(state, DeviceArray) else state
            total = fake.place.array(batch["x"] + held)
            return {"y": total, "t": total}

    return Sums


async def test_a_state_of_a_sequence_stays_on_the_device(serve, fake):
    seen = []
    chain = await serve(sums(fake, seen), f"sequence_batching {{ {STATE} }}")

    found = []
    for value, flags in ((1, 1), (2, 0), (3, 2)):
        response = await chain.handler(asked(rows(value), correlation_id=7, flags=flags))
        found.append(response.output("y").array[0, 0])

    assert found == [1, 3, 6] and fake.place.copies == 3  # of y, for the client
    assert seen == [np.ndarray, DeviceArray, DeviceArray]


async def test_a_state_that_is_a_row_does_not_keep_its_batch(serve, fake):
    seen = []
    oldest = "oldest { max_candidate_sequences: 2 max_queue_delay_microseconds: 1000 }"
    chain = await serve(sums(fake, seen), f"sequence_batching {{ {oldest} {STATE} }}")

    for value, flags in ((1, 1), (2, 0)):
        both = [asked(rows(value), correlation_id=n, flags=flags) for n in (7, 8)]
        found = await asyncio.gather(*(chain.handler(each) for each in both))
        assert [each.output("y").array[0, 0] for each in found] == [2 * value - 1] * 2
    del found
    gc.collect()

    assert seen == [np.ndarray, np.ndarray]
    assert fake.place.alive == 0
