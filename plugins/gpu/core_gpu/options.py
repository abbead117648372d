"""GpuOptions: the flags. Each takes the place of a flag of core without effect."""

from __future__ import annotations

from dataclasses import dataclass

from core.errors import invalid
from core.options import Options, Section, group
from core.options.values import BOOL, FLOAT, device_pair, read_float

_memory = group("Memory/Device Management")
_models = group("Model Repository")


@dataclass(kw_only=True)
class GpuOptions(Section):
    # fmt: off
    enable_peer_access: bool = _models(BOOL, True,
        "Let GPUs read each other's memory directly, where the machine can.")
    min_supported_compute_capability: float = _memory(FLOAT, 6.0,
        "Smallest CUDA compute capability of the GPUs on which instances are placed.")
    model_load_gpu_limit: dict[int, float] = _memory(device_pair("<fraction>", read_float), {},
        "Share of a GPU's memory, from 0 to 1: if more of it is in use, no model is loaded on that GPU.")
    # fmt: on

    def check(self, options: Options) -> None:
        for number, fraction in self.model_load_gpu_limit.items():
            if number < 0 or not 0 <= fraction <= 1:
                raise invalid(
                    f"--model-load-gpu-limit={number}:{fraction:g}: expected the number of a GPU and a "
                    "fraction from 0 to 1, such as 0:0.8"
                )
