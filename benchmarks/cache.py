"""The folder for installed and compiled parts of benchmarks: other servers, clients, backends."""

from __future__ import annotations

import os
from pathlib import Path

CACHE = "BENCHMARK_CACHE"


def default_cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get(CACHE) or Path(base) / "core-benchmarks")
