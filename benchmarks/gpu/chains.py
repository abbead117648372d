"""Three steps on a GPU: how often tensors are copied to the host and from it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.gpu.timeline import copies, recorded

SIZE = 1 << 20
IO = f'max_batch_size: 0 input [ {{ name: "x" data_type: TYPE_FP32 dims: [ {SIZE} ] }} ] '
OUT = f'output [ {{ name: "y" data_type: TYPE_FP32 dims: [ {SIZE} ] }} ] '
STEPS = ("first", "second", "third")
BLS = """import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        found = []
        for request in requests:
            tensor = pb_utils.get_input_tensor_by_name(request, "x")
            for name in ("first", "second", "third"):
                call = pb_utils.InferenceRequest(
                    model_name=name,
                    requested_output_names=["y"],
                    inputs=[pb_utils.Tensor.from_dlpack("x", tensor.to_dlpack())],
                    preferred_memory=pb_utils.PreferredMemory(pb_utils.TRITONSERVER_MEMORY_GPU),
                )
                response = call.exec()
                if response.has_error():
                    raise pb_utils.TritonModelException(response.error().message())
                tensor = response.output_tensors()[0]
            y = pb_utils.Tensor.from_dlpack("y", tensor.to_dlpack())
            found.append(pb_utils.InferenceResponse([y]))
        return found
"""
BLS_CONFIG = (
    'backend: "python" ' + IO + OUT + "instance_group [ { kind: KIND_CPU } ] "
    'parameters { key: "FORCE_CPU_ONLY_INPUT_TENSORS" value { string_value: "no" } } '
    'parameters { key: "EXECUTION_MODE" value { string_value: "thread" } }'
)


def measure(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield a row for an ensemble and a Python model (BLS), with inputs in host memory and on the GPU."""
    import torch

    import core

    write(folder)
    host = np.arange(SIZE, dtype=np.float32)
    on_gpu = torch.from_numpy(host).cuda()
    torch.cuda.synchronize()
    with core.Server(model_repository=str(folder)) as server:
        for name in ("ensemble", "bls"):
            for place, x in (("host", host), ("GPU", on_gpu)):
                stays = [core.DeviceOutput("y")] if place == "GPU" else None

                def ask(name: str = name, x: Any = x, stays: Any = stays) -> Any:
                    return server.infer(name, {"x": x}, outputs=stays)

                answer = ask()
                ask()
                y = torch.from_dlpack(answer["y"]).cpu().numpy() if stays else answer["y"]
                right = bool(np.array_equal(y, host + 3))
                yield {"chain": name, "ends": place, "right": right, **copies(recorded(ask))}


def write(folder: Path) -> None:
    """Write three models x + 1 on the GPU, their ensemble, and a Python model that calls them."""
    import torch
    from torch import nn

    class Next(nn.Module):  # type: ignore[misc]  # torch is not read
        def forward(self, x: Any) -> Any:
            return x + 1

    program = torch.export.export(Next(), (torch.ones(SIZE),))
    for name in STEPS:
        version = folder / name / "1"
        version.mkdir(parents=True)
        torch.export.save(program, version / "model.pt2")
        config = 'backend: "pytorch" ' + IO + OUT + "instance_group [ { kind: KIND_GPU } ]"
        (folder / name / "config.pbtxt").write_text(config)
    inner = ["x", "a", "b", "y"]
    steps = " ".join(
        f'step {{ model_name: "{name}" input_map {{ key: "x" value: "{before}" }} '
        f'output_map {{ key: "y" value: "{after}" }} }}'
        for name, before, after in zip(STEPS, inner[:-1], inner[1:], strict=True)
    )
    (folder / "ensemble" / "1").mkdir(parents=True)
    config = f'platform: "ensemble" {IO}{OUT}ensemble_scheduling {{ {steps} }}'
    (folder / "ensemble" / "config.pbtxt").write_text(config)
    (folder / "bls" / "1").mkdir(parents=True)
    (folder / "bls" / "1" / "model.py").write_text(BLS)
    (folder / "bls" / "config.pbtxt").write_text(BLS_CONFIG)
