"""Memory of a real GPU: handles of another process, opened by CuPy."""

import multiprocessing
from importlib.util import find_spec

import numpy as np
import pytest

from core.devices.visible import gpus

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not gpus(), reason="this process sees no GPU"),
    pytest.mark.skipif(find_spec("cupy") is None, reason="CuPy is not installed"),
]

COUNT = 1 << 20


def use(url, kind, answers):
    """Run a client in a separate process: CUDA opens no handle in the process that made it."""
    import tritonclient.grpc
    import tritonclient.http
    import tritonclient.utils.cuda_shared_memory as cuda

    library = {"http": tritonclient.http, "grpc": tritonclient.grpc}[kind]
    size = 4 * COUNT
    with library.InferenceServerClient(url) as client:
        region = cuda.create_shared_memory_region("r", 2 * size, 0)
        numbers = np.arange(COUNT, dtype=np.float32)
        cuda.set_shared_memory_region(region, [numbers])
        client.register_cuda_shared_memory("r", cuda.get_raw_handle(region), 0, 2 * size)
        x, y = library.InferInput("x", [COUNT], "FP32"), library.InferRequestedOutput("y")
        x.set_shared_memory("r", size)
        y.set_shared_memory("r", size, size)

        client.infer("double", [x], outputs=[y])

        found = cuda.get_contents_as_numpy(region, np.float32, [2 * COUNT])[COUNT:]
        answers.put(bool((found == 2 * numbers).all()))
        client.unregister_cuda_shared_memory("r")
        cuda.destroy_shared_memory_region(region)


@pytest.mark.parametrize("kind", ["http", "grpc"])
def test_a_client_of_another_process_reads_and_writes_its_own_memory(serving, kind):
    with serving(allow_client_shm=True, played_device=False) as site:
        context = multiprocessing.get_context("spawn")
        answers = context.Queue()
        client = context.Process(target=use, args=[site.url(kind), kind, answers])
        client.start()
        client.join(120)

        assert client.exitcode == 0 and answers.get(timeout=10)
        assert site.memory.cuda_status() == []


def test_more_than_was_allocated_cannot_be_registered(serving):
    with serving(allow_client_shm=True, played_device=False) as site:
        context = multiprocessing.get_context("spawn")
        answers = context.Queue()
        client = context.Process(target=claim, args=[site.url("http"), answers])
        client.start()
        client.join(120)

        assert "invalid args" in answers.get(timeout=10)


def claim(url, answers):
    import tritonclient.http
    import tritonclient.utils.cuda_shared_memory as cuda
    from tritonclient.utils import InferenceServerException

    region = cuda.create_shared_memory_region("r", 4096, 0)
    with tritonclient.http.InferenceServerClient(url) as client:
        try:
            client.register_cuda_shared_memory("r", cuda.get_raw_handle(region), 0, 1 << 40)
            answers.put("taken")
        except InferenceServerException as error:
            answers.put(str(error))
    cuda.destroy_shared_memory_region(region)
