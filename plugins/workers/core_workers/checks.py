"""List the options that apply to each worker instead of the whole server."""

from __future__ import annotations

from collections.abc import Sequence

from core.options import Options


def not_shared(options: Options, gpus: Sequence[int] = ()) -> list[str]:
    """Return a warning for each option in use that applies to each worker instead of the whole server.

    gpus   numbers of the GPUs on which instances may be placed; one more warning if there are any
    """
    several = f"--workers={options.workers}"
    found = []
    if "local" in options.cache_config:
        found.append(
            f"--cache-config: with {several} each worker has a cache of that size of its own"
        )
    if options.rate_limit != "off":
        found.append(f"--rate-limit: with {several} each worker has all resources for itself")
    if any(key == "file" for key, _ in options.trace_config.get("triton", [])):
        found.append(
            f"--trace-config: with {several} each worker writes a file of its own, <file>.worker-1 "
            "and so on, and counts its own requests"
        )
    if any(key == "mode" and mode != "triton" for key, mode in options.trace_config.get("", [])):
        found.append(
            f"--trace-config: with {several} each worker sends the spans of its own requests, and "
            "counts them for itself"
        )
    if gpus:
        found.append(
            f"GPU {', '.join(map(str, gpus))}: with {several} each worker has all models in the memory "
            "of the GPU for itself, and runtimes of its own beside them"
        )
    return found
