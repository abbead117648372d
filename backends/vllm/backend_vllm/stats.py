"""The StatLogger through which vLLM reports its steps.

AsyncLLM ─► [StatLogger] ─► Counts
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vllm.v1.metrics.loggers import StatLoggerBase

from backend_vllm.counts import Counts


def stat_logger(counts: Counts) -> Callable[..., Any]:
    """Return a factory of StatLoggers for AsyncLLM, all of which count in `counts`."""

    class StatLogger(StatLoggerBase):  # type: ignore[misc]  # vLLM has no types
        def __init__(self, vllm_config: Any, engine_index: int = 0):
            """Do nothing: `counts` has all that is needed."""

        def record(
            self,
            scheduler_stats: Any,
            iteration_stats: Any,
            mm_cache_stats: Any = None,
            engine_idx: int = 0,
        ) -> None:
            counts.record(scheduler_stats, iteration_stats)

        def log_engine_initialized(self) -> None:
            """Do nothing."""

    def make(vllm_config: Any, engine_index: int) -> StatLogger:
        return StatLogger(vllm_config, engine_index)

    return make
