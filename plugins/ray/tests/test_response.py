"""A call of a replica's server copies no tensor: the only copies are those that Ray makes."""

from types import SimpleNamespace

import numpy as np
import pytest
from core_ray import Response

import core

X = np.arange(4, dtype=np.float32)
Y = np.arange(8, dtype=np.float32)


@pytest.fixture
def seen():
    return []


@pytest.fixture
def server(seen):
    """A server whose model `give` returns the array Y."""
    with core.Server() as made:
        tensors = {"inputs": {"x": ("FP32", [-1])}, "outputs": {"y": ("FP32", [-1])}}
        made.bind("give", lambda x: seen.append(x) or Y, **tensors)
        yield made


def check(response):
    assert type(response) is Response
    assert (response.model_name, response.model_version, response.id) == ("give", 1, "mine")
    np.testing.assert_array_equal(response["y"], Y)


def test_a_response_has_the_memory_of_the_models_array(server):
    response = Response.of(server.infer("give", {"x": X}, id="mine"))

    check(response)
    assert np.shares_memory(response["y"], Y)


async def test_a_call_of_a_replica_copies_neither_inputs_nor_outputs(server, seen):
    pytest.importorskip("ray.serve", reason="Ray is an extra: make test-ray has it")
    from core_ray import CoreReplica

    replica = SimpleNamespace(_server=server)
    response = await CoreReplica.infer(replica, "give", {"x": X}, id="mine")

    check(response)
    assert np.shares_memory(response["y"], Y)
    assert np.shares_memory(seen[0], X)
