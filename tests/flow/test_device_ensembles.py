"""Arrays on devices between the steps of an ensemble: where they stay, and when the host has copies."""

import asyncio
import gc
from pathlib import Path

import numpy as np
import pytest
from core_testing.fake_device import DeviceArray
from flow.devices import BATCHING, asked, rows
from flow.ensembles import IO, step

from core import config as configuration
from core.pipeline import ChainServices
from core.pipeline.ensemble import EnsembleChain, StepModels, steps_of
from core.request import DeviceOutput
from core.tensor import Tensor


@pytest.fixture
def ensemble(serve, fake):
    async def make(steps, io=IO, config=BATCHING):
        models = {
            "gpu": await serve(fake.instance(), config),
            "cpu": await serve(fake.instance(memory="host", answers="host"), config),
        }
        text = f'name: "e" platform: "ensemble" max_batch_size: 8 {io}'
        text += " ensemble_scheduling { " + " ".join(steps) + " }"
        message = configuration.parse_text(text, "test")
        configuration.normalise(message, {}, [])
        found = steps_of(message)
        for each in found:
            each.takes_device = models[each.model].takes_device

        async def check():
            return True

        loop = asyncio.get_running_loop()
        return EnsembleChain(
            message,
            configuration.signature_of(message, Path(), 1),
            found,
            StepModels(
                lambda request: models[request.model_name].handler(request), lambda: True, check
            ),
            ChainServices(loop, loop.time_ns),
        )

    return make


async def test_steps_on_the_device_copy_only_for_the_client_and_once(ensemble, fake):
    chain = await ensemble([step("gpu", "x", "a"), step("gpu", "a", "b"), step("gpu", "b", "z")])

    response = await chain.handler(asked(rows(1)))
    tensor = response.output("z")

    assert [type(each) for each in fake.given] == [np.ndarray, DeviceArray, DeviceArray]
    assert np.array_equal(tensor.array, rows(4)) and type(tensor) is Tensor
    assert fake.place.copies == 1


async def test_the_second_step_gets_the_very_array_of_the_first(ensemble, fake):
    chain = await ensemble([step("gpu", "x", "a"), step("gpu", "a", "z")])
    made = []
    array = fake.place.array
    fake.place.array = lambda host: made.append(array(host)) or made[-1]

    await chain.handler(asked(rows(1)))

    assert fake.given[1] is made[0]


async def test_a_step_on_the_host_gets_one_copy_of_its_input(ensemble, fake):
    chain = await ensemble([step("gpu", "x", "a"), step("cpu", "a", "z")])

    response = await chain.handler(asked(rows(1)))

    assert [type(each) for each in fake.given] == [np.ndarray, np.ndarray]
    assert response.output("z").array[0, 0] == 3
    assert fake.place.copies == 1


async def test_a_tensor_for_device_and_host_steps_is_copied_once(ensemble, fake):
    io = IO + 'output [ { name: "a" data_type: TYPE_FP32 dims: [ -1 ] } ]'
    io += 'output [ { name: "w" data_type: TYPE_FP32 dims: [ -1 ] } ]'
    chain = await ensemble(
        [step("gpu", "x", "a"), step("gpu", "a", "z"), step("cpu", "a", "w")], io
    )

    response = await chain.handler(asked(rows(1)))

    assert {type(each) for each in fake.given[1:]} == {DeviceArray, np.ndarray}
    assert [response.output(name).array[0, 0] for name in ("a", "z", "w")] == [2, 3, 3]
    assert fake.place.copies == 2  # a, and z for the client


async def test_requests_that_meet_in_the_steps_keep_their_rows(ensemble, fake):
    chain = await ensemble([step("gpu", "x", "a"), step("gpu", "a", "z")])
    values = [(1,), (2, 3), (4, 5, 6)]

    answers = await asyncio.gather(*(chain.handler(asked(rows(*each))) for each in values))

    assert [a.output("z").array[:, 0].tolist() for a in answers] == [[3], [4, 5], [6, 7, 8]]
    assert all(kinds == [DeviceArray] * 3 for _, kinds in fake.gathered) and fake.gathered
    assert fake.place.copies == 1


async def test_an_ensemble_returns_a_device_tensor_if_requested(ensemble, fake):
    chain = await ensemble([step("cpu", "x", "a"), step("gpu", "a", "z")])

    tensor = (await chain.handler(asked(rows(1), (DeviceOutput("z"),)))).output("z")

    assert isinstance(tensor.value, DeviceArray)
    assert fake.place.copies == 0


async def test_tensors_of_the_steps_are_freed_with_the_response(ensemble, fake):
    chain = await ensemble([step("gpu", "x", "a"), step("gpu", "a", "b"), step("gpu", "b", "z")])

    response = await chain.handler(asked(rows(1)))
    fake.given.clear()
    gc.collect()

    assert fake.place.alive == 0 and response.output("z").array[0, 0] == 4


@pytest.mark.parametrize("seed", range(6))
async def test_responses_equal_those_of_host_inputs(ensemble, fake, seed):
    random = np.random.default_rng(seed)
    models = random.choice(["gpu", "cpu"], 3)
    names = ["x", "a", "b", "z"]
    chain = await ensemble([step(m, names[i], names[i + 1]) for i, m in enumerate(models)])
    inputs = [random.random((random.integers(1, 4), 2), np.float32) for _ in range(5)]

    def request(array):
        there = random.random() < 0.5
        wanted = (DeviceOutput("z", bool(random.random() < 0.5)),) if random.random() < 0.5 else ()
        return asked(fake.place.array(array) if there else array, wanted)

    answers = await asyncio.gather(*(chain.handler(request(array)) for array in inputs))

    for array, answer in zip(inputs, answers, strict=True):
        assert np.array_equal(answer.output("z").array, array + 1 + 1 + 1)
