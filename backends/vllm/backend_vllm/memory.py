"""Memory that vLLM keeps for a model: its weights and its cache of keys and values.

VllmConfig of a running engine, bytes of the weights ─► [memory_of] ─► MemoryUsage of each device
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import core


def memory_of(config: Any, weights: int) -> Sequence[core.MemoryUsage]:
    """Return what an engine keeps on each of its devices.

    config    its VllmConfig, after the start
    weights   total bytes of the files of weights; each device holds an equal part
    """
    from vllm.platforms import current_platform

    parallel = config.parallel_config
    parts = parallel.tensor_parallel_size * parallel.pipeline_parallel_size
    byte_size = weights // parts + _cache_bytes(config)
    if current_platform.is_cpu():
        return (core.MemoryUsage("CPU", 0, byte_size * parts),)
    numbers = list(parallel.assigned_physical_gpu_ids or range(parts))
    return tuple(core.MemoryUsage("GPU", number, byte_size) for number in numbers[:parts])


def _cache_bytes(config: Any) -> int:
    """Return the bytes of keys and values on one device; 0 for models without a cache."""
    model, cache, parallel = config.model_config, config.cache_config, config.parallel_config
    tokens = (cache.num_gpu_blocks or 0) * (cache.block_size or 0)
    from vllm.utils.torch_utils import STR_DTYPE_TO_TORCH_DTYPE

    dtype = STR_DTYPE_TO_TORCH_DTYPE.get(cache.cache_dtype, model.dtype)
    heads, layers = model.get_num_kv_heads(parallel), model.get_num_layers(parallel)
    both = 1 if model.use_mla else 2
    return int(tokens * both * layers * heads * model.get_head_size() * dtype.itemsize)
