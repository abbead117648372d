"""The compared servers: install, start on one core, and stop.

core       the server of this environment
triton     the real tritonserver, from the package nvidia-pytriton
mlserver   Seldon's MLServer
fastapi    FastAPI and onnxruntime under uvicorn, written by hand
"""

from __future__ import annotations

from benchmarks.servers.core import Core
from benchmarks.servers.fastapi import FastApi
from benchmarks.servers.kind import Kind
from benchmarks.servers.mlserver import MlServer
from benchmarks.servers.triton import Triton

KINDS: dict[str, type[Kind]] = {kind.name: kind for kind in (Core, Triton, MlServer, FastApi)}
