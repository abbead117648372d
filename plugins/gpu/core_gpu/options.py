"""GpuOptions: the flags. Each takes the place of a flag of core without effect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.devices.visible import gpus
from core.errors import CoreError, invalid
from core.options import Options, Section, group
from core.options.values import BOOL, FLOAT, device_pair, integer, read_float, read_int

POOL_BYTES = 64 << 20  # of each GPU, unless an option says otherwise: Triton's default
STATE_BYTES = 1 << 30  # most bytes of a growable state, likewise

_memory = group("Memory/Device Management")
_models = group("Model Repository")


@dataclass(kw_only=True)
class GpuOptions(Section):
    # fmt: off
    enable_peer_access: bool = _models(BOOL, True,
        "Let GPUs read each other's memory directly, where the machine can.")
    pinned_memory_pool_byte_size: int = _memory(integer(), 256 * 2**20,
        "Bytes of pinned host memory for copies to and from GPUs, allocated at the first load on a GPU. "
        "0: no pool.")
    cuda_memory_pool_byte_size: dict[int, int] = _memory(device_pair("<integer>", read_int), {},
        "Bytes of a GPU's memory for inputs, allocated at the first load on that GPU. 0: no pool. The "
        "default is 67108864 for each GPU.")
    cuda_virtual_address_size: dict[int, int] = _memory(device_pair("<integer>", read_int), {},
        "Most bytes of a state on a GPU with use_growable_memory. The default is 1073741824 for each GPU.")
    min_supported_compute_capability: float = _memory(FLOAT, 6.0,
        "Smallest CUDA compute capability of the GPUs on which instances are placed.")
    model_load_gpu_limit: dict[int, float] = _memory(device_pair("<fraction>", read_float), {},
        "Share of a GPU's memory, from 0 to 1: if more of it is in use, no model is loaded on that GPU.")
    # fmt: on

    @classmethod
    def complete(cls, given: dict[str, Any]) -> Sequence[str]:
        """Set the size of the pool of each GPU that is there, so that the startup table shows it."""
        name = "cuda_memory_pool_byte_size"
        given[name] = {**dict.fromkeys(gpus(), POOL_BYTES), **given.get(name, {})}
        return ()

    def check(self, options: Options) -> None:
        for number, fraction in self.model_load_gpu_limit.items():
            if number < 0 or not 0 <= fraction <= 1:
                raise _wrong(
                    "--model-load-gpu-limit",
                    f"{number}:{fraction:g}",
                    "a fraction from 0 to 1, such as 0:0.8",
                )
        for number, size in self.cuda_memory_pool_byte_size.items():
            if number < 0 or size < 0:
                expected = f"a number of bytes, such as 0:{POOL_BYTES}; 0 bytes for no pool"
                raise _wrong("--cuda-memory-pool-byte-size", f"{number}:{size}", expected)
        for number, size in self.cuda_virtual_address_size.items():
            if number < 0 or size < 1:
                expected = f"a number of bytes from 1 on, such as 0:{STATE_BYTES}"
                raise _wrong("--cuda-virtual-address-size", f"{number}:{size}", expected)

    def by_gpu(self) -> Mapping[str, Mapping[int, float]]:
        """Return the options that have a value for each GPU: name → number of a GPU → value."""
        return {
            "--model-load-gpu-limit": self.model_load_gpu_limit,
            "--cuda-memory-pool-byte-size": self.cuda_memory_pool_byte_size,
            "--cuda-virtual-address-size": self.cuda_virtual_address_size,
        }


def _wrong(option: str, found: str, expected: str) -> CoreError:
    return invalid(f"{option}={found}: expected the number of a GPU and {expected}")
