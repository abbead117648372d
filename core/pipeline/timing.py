"""BatchTiming: what the hook core_batch_done gets."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BatchTiming:
    """When one execution did what. Times are those of time.monotonic_ns().

    requests, rows     of the batch
    start_ns           it reached the instance
    compute_start_ns   its inputs were gathered, where the backend tells (Batch.inputs_ready); else start_ns
    compute_end_ns     the model had computed; end_ns where the backend gave no outputs to split
    end_ns             it had ended, and its answers were made, except those that come later
    error              what it raised, None for nothing
    """

    requests: int
    rows: int
    start_ns: int
    compute_start_ns: int
    compute_end_ns: int
    end_ns: int
    error: BaseException | None
