"""--enable-peer-access on a played machine."""

import logging

import pytest
from core_gpu.driver import CudaDriver
from core_gpu.peers import Peers
from played_machine import Gpu, PlayedCuda

ON_GPU = "instance_group { kind: KIND_GPU gpus: [ %s ] }"


async def test_gpus_read_each_other_once_models_use_both(serve, repository):
    gpus = [Gpu(0), Gpu(1)]
    folder = repository(a=ON_GPU % 0)
    server = await serve(gpus, folder)
    assert [each.retained for each in gpus] == [0, 0], "a context takes memory of a GPU"

    repository(b=ON_GPU % 1)
    await server.manager.load("b", {})

    assert [each.reads for each in gpus] == [{1}, {0}]
    assert [each.retained for each in gpus] == [1, 1]


async def test_it_can_be_turned_off(serve, repository):
    gpus = [Gpu(0), Gpu(1)]

    await serve(gpus, repository(m=ON_GPU % "0, 1"), enable_peer_access=False)

    assert [each.reads for each in gpus] == [set(), set()]


def test_a_pair_without_a_link_is_named_once(caplog):
    gpus = [Gpu(number, in_use=True) for number in range(3)]
    peers = Peers(CudaDriver(PlayedCuda(gpus, links=[{0, 1}])))

    with caplog.at_level(logging.INFO, "core"):
        peers.enable()
        peers.enable()

    assert peers.enabled == {(0, 1), (1, 0)}
    told = [record.message for record in caplog.records]
    assert told.count("GPU 0 reads the memory of GPU 1 directly") == 1
    assert len([text for text in told if "GPU 2" in text]) == 4


def test_access_that_a_framework_has_enabled_is_no_error():
    gpus = [Gpu(0, in_use=True), Gpu(1, in_use=True)]
    gpus[0].reads.add(1)
    peers = Peers(CudaDriver(PlayedCuda(gpus)))

    peers.enable()

    assert peers.enabled == {(0, 1), (1, 0)}
    peers.close()
    assert [each.retained for each in gpus] == [0, 0]


@pytest.mark.parametrize("function", ["cuCtxEnablePeerAccess", "cuDevicePrimaryCtxGetState"])
def test_an_error_of_the_driver_is_a_warning(caplog, function):
    cuda = PlayedCuda([Gpu(0, in_use=True), Gpu(1, in_use=True)])
    cuda.statuses[function] = 2
    peers = Peers(CudaDriver(cuda))

    with caplog.at_level(logging.WARNING, "core"):
        peers.enable()

    assert caplog.records[0].message == (
        f"access between GPUs is not enabled: {function}: out of memory"
    )
    assert cuda.stack == []
