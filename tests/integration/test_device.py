"""An ensemble of two models on a device behind real frontends: between them nothing leaves the device, and a
client's answer is copied once, by the model that made it and not on the loop."""

import asyncio
import threading

import numpy as np
import pytest
import tritonclient.grpc.aio as grpc_client
import tritonclient.http.aio as http_client
from core_testing.fake_device import DeviceArray, FakeDevice

import core
from core.options import Options
from core.server import InferenceServer
from frontends.grpc.frontend import GrpcFrontend
from frontends.http.frontend import HttpFrontend

IO = """
max_batch_size: 8
input [ {{ name: "x" data_type: TYPE_FP32 dims: [ 2 ] }} ]
output [ {{ name: "{output}" data_type: TYPE_FP32 dims: [ 2 ] }} ]
"""
STEP = """step {{ model_name: "{model}" input_map {{ key: "x" value: "{takes}" }}
                  output_map {{ key: "y" value: "{gives}" }} }}"""


class Counted(DeviceArray):
    def get(self):
        self.place.threads.append(threading.current_thread())
        return super().get()


class AddOne(core.ModelInstance):
    memory = "device"

    def execute(self, batch):
        place = self.model.backend.place
        x = batch["x"]
        place.given.append(type(x))
        held = x._held if isinstance(x, DeviceArray) else x
        return {"y": Counted(place, held + 1)}

    def gather(self, name, arrays):
        return self.model.backend.place.concatenate(arrays)


@pytest.fixture
async def site(tmp_path):
    """The server's ports, and the device of its models."""
    model = IO.format(output="y") + 'backend: "test" dynamic_batching { }'
    steps = STEP.format(model="one", takes="x", gives="a")
    steps += STEP.format(model="two", takes="a", gives="z")
    texts = {
        "one": model,
        "two": model,
        "both": f'platform: "ensemble" {IO.format(output="z")} ensemble_scheduling {{ {steps} }}',
    }
    for name, text in texts.items():
        (tmp_path / name / "1").mkdir(parents=True)
        (tmp_path / name / "config.pbtxt").write_text(text)
    backend = core.Backend(instance=AddOne)
    place = backend.place = FakeDevice()
    place.given, place.threads = [], []
    options = Options.defaults(
        model_repository=[str(tmp_path)],
        http_address="127.0.0.1",
        http_port=0,
        grpc_address="127.0.0.1",
        grpc_port=0,
    )
    server = InferenceServer(options, find_backend=lambda name: backend)
    frontends = [HttpFrontend(server), GrpcFrontend(server)]
    for frontend in frontends:
        await frontend.start()
    await server.start()
    yield [frontend.port for frontend in frontends], place
    for frontend in frontends:
        await frontend.stop(5)
    await server.stop(5)


async def over_http(port, x, model, binary=True):
    async with http_client.InferenceServerClient(f"127.0.0.1:{port}") as client:
        given = http_client.InferInput("x", x.shape, "FP32")
        given.set_data_from_numpy(x)
        name = "z" if model == "both" else "y"
        wanted = [http_client.InferRequestedOutput(name, binary_data=binary)]
        return (await client.infer(model, [given], outputs=wanted)).as_numpy(name)


async def over_grpc(port, x, model):
    async with grpc_client.InferenceServerClient(f"127.0.0.1:{port}") as client:
        given = grpc_client.InferInput("x", x.shape, "FP32")
        given.set_data_from_numpy(x)
        return (await client.infer(model, [given])).as_numpy("z" if model == "both" else "y")


X = np.arange(4, dtype=np.float32).reshape(2, 2)


@pytest.mark.parametrize("form", ["json", "binary", "grpc"])
async def test_a_client_gets_the_answer_by_one_copy(site, form):
    (http, grpc), place = site

    if form == "grpc":
        found = await over_grpc(grpc, X, "both")
    else:
        found = await over_http(http, X, "both", binary=form == "binary")

    assert np.array_equal(found, X + 2)
    assert place.given == [np.ndarray, Counted]
    assert place.copies == 1


async def test_the_copy_is_made_on_the_thread_of_the_instance(site):
    (http, _), place = site

    await over_http(http, X, "both")

    assert threading.current_thread() not in place.threads
    assert [thread.name for thread in place.threads] == ["two_0"]


async def test_clients_of_one_model_get_their_own_rows(site):
    (http, grpc), place = site
    asked = [(over_grpc, grpc) if i % 2 else (over_http, http) for i in range(8)]

    found = await asyncio.gather(*(ask(port, X + i, "one") for i, (ask, port) in enumerate(asked)))

    for i, each in enumerate(found):
        assert np.array_equal(each, X + i + 1)
    assert place.copies <= 8


async def test_device_memory_is_released_when_the_clients_have_their_responses(site):
    (http, grpc), place = site

    await over_http(http, X, "both")
    await over_grpc(grpc, X, "both")

    assert place.alive == 0
