"""Shared memory over HTTP: regions, and tensors that are in them."""

import base64
import json
import os
from types import SimpleNamespace

import numpy as np
import pytest

from core.errors import CoreError, Kind
from core.response import InferenceResponse
from core.tensor import Tensor
from frontends.http.codec.render import render
from frontends.http.message import HttpRequest
from frontends.http.services import shared_memory
from frontends.shared.memory import MemoryControl, SharedMemoryRegions
from frontends.shared.memory.cuda import CudaRegions

KEY = f"/core_unit_test_http_{os.getpid()}"
HANDLE = {"b64": base64.b64encode(bytes(64)).decode()}


@pytest.fixture
def memory():
    """An object of 64 bytes, as a file."""
    path = f"/dev/shm{KEY}"
    np.arange(16, dtype=np.float32).tofile(path)
    yield path
    os.unlink(path)


@pytest.fixture
def regions(memory):
    """Regions, of which `r` is registered."""
    made = SharedMemoryRegions(allowed=True)
    made.register("r", KEY, 0, 64)
    return made


def placed(name="x", datatype="FP32", shape=(2,), **place):
    options = {f"shared_memory_{key}": value for key, value in place.items()}
    return {"name": name, "datatype": datatype, "shape": shape, "parameters": options}


def wanting(tensor, **place):
    output = placed("y", **place)
    return {"inputs": [tensor([1])], "outputs": [{k: output[k] for k in ("name", "parameters")}]}


class TestInputs:
    def test_an_input_is_a_view_of_its_region(self, parsed, regions, memory):
        entry = placed(region="r", offset=8, byte_size=8)

        request, _ = parsed({"inputs": [entry]}, regions=regions)

        assert request.shared
        assert request.inputs["x"].array.tolist() == [2, 3]
        with open(memory, "r+b") as file:
            file.seek(8)
            file.write(np.float32(7).tobytes())
        assert request.inputs["x"].array.tolist() == [7, 3]

    def test_inputs_may_come_all_three_ways(self, parsed, regions, tensor):
        binary = {**placed("b", shape=[1]), "parameters": {"binary_data_size": 4}}
        entries = [
            placed("a", shape=[1], region="r", byte_size=4, offset=12),
            binary,
            tensor([5], name="c"),
        ]

        request, _ = parsed({"inputs": entries}, tail=np.float32(4).tobytes(), regions=regions)

        assert [each.array.tolist() for each in request.inputs.values()] == [[3], [4], [5]]

    def test_a_request_without_regions_is_not_shared(self, parsed, tensor):
        assert not parsed({"inputs": [tensor([1])]})[0].shared

    @pytest.mark.parametrize(
        "place,text",
        [
            ({"region": 1}, "attempt to access JSON non-string as string in input 'x'"),
            ({"region": "r", "offset": -1, "byte_size": 4}, "'shared_memory_offset'"),
            ({"region": "r", "offset": 1.5, "byte_size": 4}, "'shared_memory_offset'"),
            ({"region": "r", "byte_size": "4"}, "'shared_memory_byte_size'"),
            ({"region": "r", "byte_size": True}, "'shared_memory_byte_size'"),
            ({"region": "r", "byte_size": 65}, "Invalid offset + byte size for shared memory"),
            ({"region": "r", "offset": 64, "byte_size": 4}, "Invalid offset for shared memory"),
            ({"region": "r", "offset": 2**64 - 4, "byte_size": 8}, "Invalid offset for shared"),
        ],
    )
    def test_a_place_that_is_none_is_refused(self, refusal, regions, tensor, place, text):
        assert text in refusal({"inputs": [placed(**place)]}, regions=regions)
        output_text = text.replace("input 'x'", "output 'y'")
        assert output_text in refusal(wanting(tensor, **place), regions=regions)


class TestOutputs:
    def test_an_output_has_the_memory_that_it_names(self, parsed, regions, tensor):
        request, form = parsed(wanting(tensor, region="r", offset=4, byte_size=8), regions=regions)

        (output,) = request.outputs
        assert (request.shared, form.placed) == (True, {"y"})
        assert output.memory.nbytes == 8
        assert np.frombuffer(output.memory, np.float32).tolist() == [1, 2]

    def test_other_members_of_clients_are_no_conflict(self, parsed, regions, tensor):
        document = wanting(tensor, region="r", byte_size=8)
        document["outputs"][0]["parameters"].update(binary_data=False, classification=0)

        assert parsed(document, regions=regions)[0].outputs[0].memory is not None

    def test_an_output_in_shared_memory_is_only_described(self, parsed, regions, tensor):
        _, form = parsed(wanting(tensor, region="r", byte_size=8), regions=regions)
        outputs = [Tensor.of(name, np.array([1], np.float32)) for name in ("y", "z")]

        for form.default in (False, True):
            answer = render(InferenceResponse("m", 1, outputs), form)
            text, _, tail = answer.body.partition(b"]}" + np.float32(1).tobytes())
            first, second = json.loads(text + b"]}" if form.default else answer.body)["outputs"]
            assert first == {"name": "y", "datatype": "FP32", "shape": [1]}
            assert ("data" in second) is not form.default
            assert tail == b""


@pytest.fixture
def server(memory):
    regions = SharedMemoryRegions(allowed=True)
    memory_control = MemoryControl(regions, CudaRegions(regions))
    return SimpleNamespace(shared=lambda factory: memory_control)


@pytest.fixture
def ask(server):
    """Call a service; the JSON of its answer."""

    async def call(service, region=None, body=b"", kind="system"):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        found = await service(
            server, HttpRequest("POST", "", {"kind": kind, "region": region}, {}, body)
        )
        assert found.status == 200
        return json.loads(found.body) if found.body else None

    return call


@pytest.fixture
def refused(ask):
    """The text with which a service refuses."""

    async def call(*args, error=Kind.INVALID, **kwargs):
        with pytest.raises(CoreError) as caught:
            await ask(*args, **kwargs)
        assert caught.value.kind is error
        return caught.value.message

    return call


class TestServices:
    async def test_a_region_is_registered_listed_and_forgotten(self, ask):
        entry = {"name": "a", "key": KEY, "offset": 0, "byte_size": 64}
        await ask(shared_memory.register, "a", {"key": KEY, "byte_size": 64})
        await ask(shared_memory.register, "b", {"key": KEY, "offset": 0, "byte_size": 8})

        assert await ask(shared_memory.status) == [
            entry,
            {"name": "b", "key": KEY, "offset": 0, "byte_size": 8},
        ]
        assert await ask(shared_memory.status, "a") == [entry]
        await ask(shared_memory.unregister, "b")
        assert await ask(shared_memory.status) == [entry]
        await ask(shared_memory.unregister)
        assert await ask(shared_memory.status) == []

    @pytest.mark.parametrize(
        "body,text",
        [
            ({}, "Shared memory register request has no 'key' field"),
            (b"", "Shared memory register request has no 'key' field"),
            ([], "Shared memory register request has no 'key' field"),
            ({"key": KEY}, "Shared memory register request has no 'byte_size' field"),
            ({"key": 1, "byte_size": 4}, "Unable to parse 'key'"),
            ({"key": KEY, "byte_size": "4"}, "Unable to parse 'byte_size'"),
            ({"key": KEY, "byte_size": 4, "offset": -1}, "Unable to parse 'offset'"),
            ({"key": KEY, "byte_size": 65}, "failed to register shared memory region 'r'"),
            (b"{", "failed to parse the request JSON buffer"),
        ],
    )
    async def test_a_registration_has_all_required_fields(self, refused, body, text):
        assert text in await refused(shared_memory.register, "r", body)

    @pytest.mark.parametrize("kind", ["system", "cuda"])
    async def test_a_registration_has_a_name(self, refused, kind):
        text = await refused(shared_memory.register, None, {}, kind)
        assert text == f"'region name' is necessary to register {kind} shared memory region"

    async def test_an_unknown_region_has_no_status(self, refused):
        assert await refused(shared_memory.status, "r", error=Kind.NOT_FOUND) == (
            "Unable to find system shared memory region: 'r'"
        )

    @pytest.mark.parametrize(
        "body,text",
        [
            ({}, "Shared memory register request has no 'raw_handle' field"),
            ({"raw_handle": HANDLE}, "Shared memory register request has no 'byte_size' field"),
            *[
                (
                    {"raw_handle": handle, "byte_size": 4},
                    "'raw_handle' must be a valid base64 encoded cudaIpcMemHandle_t",
                )
                for handle in (None, "x", {}, {"b64": 1}, {"b64": "?"}, {"b64": "AAAA"})
            ],
            (
                {"raw_handle": HANDLE, "byte_size": 4, "device_id": 0},
                "failed to register CUDA shared memory region: 'r', GPUs not supported",
            ),
        ],
    )
    async def test_memory_of_gpus_is_refused(self, ask, refused, body, text):
        assert await refused(shared_memory.register, "r", body, "cuda") == text
        assert await ask(shared_memory.status, kind="cuda") == []
        await ask(shared_memory.unregister, kind="cuda")

    @pytest.mark.parametrize("kind", ["system", "cuda"])
    async def test_without_leave_only_the_status_answers(self, server, ask, refused, kind):
        regions = SharedMemoryRegions(allowed=False)
        memory_control = MemoryControl(regions, CudaRegions(regions))
        server.shared = lambda factory: memory_control

        assert await ask(shared_memory.status, kind=kind) == []
        for service in (shared_memory.register, shared_memory.unregister):
            text = await refused(service, "r", b"{", kind, error=Kind.UNSUPPORTED)
            assert text.startswith("Client shared memory is disabled.")
