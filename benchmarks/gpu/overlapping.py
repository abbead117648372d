"""The part of the time of copies in which a kernel ran, while clients send batches from host memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.gpu import models
from benchmarks.gpu.networks import BY_NAME, DEVICE, file_of
from benchmarks.gpu.timeline import overlap, recorded

ROWS = 32


def measure(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield one row: batches of images, TorchScript with graphs, one instance."""
    import core

    network = BY_NAME["resnet50"]
    file = file_of(network, "torchscript", folder / "file", DEVICE)
    models.write(folder / "models", network, "torchscript", 1, file)
    inputs = {"INPUT__0": network.sample(ROWS).numpy()}
    with core.Server(model_repository=str(folder / "models")) as server:

        def work(seconds: float = 0.5) -> float:
            ask = lambda: server.infer(network.name, inputs)  # noqa: E731
            return models.served(ask, seconds, models.CLIENTS, ROWS)

        work(1.0)
        rate = work(1.0)
        events = recorded(work)
    yield {
        "images_per_s": rate,
        "inputs_beside_kernels": overlap(events, "HtoD"),
        "outputs_beside_kernels": overlap(events, "DtoH"),
    }
