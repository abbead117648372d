"""The network ResNet-50 by ONNX Runtime with CUDA, beside a bare session with the same bindings."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.gpu.models import BATCHES, CLIENTS, served
from benchmarks.gpu.networks import BY_NAME, DEVICE
from benchmarks.gpu.results import LeftOut

CONFIG = """backend: "onnxruntime"
max_batch_size: 64
instance_group [ { kind: KIND_GPU count: 1 } ]
"""


def measure(folder: Path, seconds: float, rounds: int) -> Iterator[dict[str, Any]]:
    """Yield a row for each batch size. Raises LeftOut if ONNX Runtime has no CUDA."""
    import onnxruntime  # type: ignore[import-untyped]
    import torch

    import core

    if "CUDAExecutionProvider" not in onnxruntime.get_available_providers():
        raise LeftOut(f"onnxruntime {onnxruntime.__version__} has no CUDAExecutionProvider")
    network = BY_NAME["resnet50"]
    version = folder / network.name / "1"
    version.mkdir(parents=True)
    torch.onnx.export(
        network.module(DEVICE),
        (network.sample(2).to(DEVICE),),
        str(version / "model.onnx"),
        input_names=["INPUT__0"],
        output_names=["OUTPUT__0"],
        dynamic_shapes=({0: torch.export.Dim("rows", min=1, max=64)},),
        dynamo=True,
        external_data=False,
    )
    (version.parent / "config.pbtxt").write_text(CONFIG + network.inputs)
    session = onnxruntime.InferenceSession(
        str(version / "model.onnx"), providers=["CUDAExecutionProvider"]
    )
    with core.Server(model_repository=str(folder)) as server:
        for rows in BATCHES:
            inputs = {"INPUT__0": network.sample(rows).numpy()}

            def ask(inputs: Any = inputs) -> Any:
                return server.infer(network.name, inputs)

            def bare(inputs: Any = inputs) -> Any:
                return session.run(["OUTPUT__0"], inputs)

            served(ask, 0.3, CLIENTS, rows)
            served(bare, 0.3, 1, rows)
            turns = [
                (served(bare, seconds, CLIENTS, rows), served(ask, seconds, CLIENTS, rows))
                for _ in range(rounds)
            ]
            yield {
                "network": network.name,
                "batch": rows,
                "bare_per_s": median(each for each, _ in turns),
                "served_per_s": median(each for _, each in turns),
                "ratio": median(each / other for other, each in turns),
                "added_p50_ms": 1e3 * (_p50(ask) - _p50(bare)),
                "largest_difference": float(abs(ask()["OUTPUT__0"] - bare()[0]).max()),
            }


def _p50(ask: Any, count: int = 60) -> float:
    found = []
    for _ in range(count):
        begin = time.perf_counter()
        ask()
        found.append(time.perf_counter() - begin)
    return median(found)
