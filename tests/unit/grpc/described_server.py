"""A server whose models and control return the values of a test."""

import asyncio
from types import SimpleNamespace

from core.config import ModelConfig
from core.errors import CoreError, not_found
from core.options import Options
from core.telemetry.statistics import Statistics
from core.telemetry.tracing import Tracer
from frontends.grpc.extra_methods import GrpcMethods
from frontends.shared.access.caller_names import CallerNames
from frontends.shared.context import FrontendContext
from frontends.shared.load_reports import LoadReports, _reports_of
from frontends.shared.memory import MemoryControl, SharedMemoryRegions
from frontends.shared.memory.cuda import CudaRegions
from frontends.shared.readiness import Readiness


class Described:
    """All parts of a server's control: returns the values of a test, records its calls."""

    endpoints = None  # nothing is inferred here

    def __init__(self):
        self.state = True  # bool, or the CoreError that stands in the way
        self.told = []
        self.go = asyncio.Event()
        self.go.set()

    def live(self):
        if isinstance(self.state, CoreError):
            raise self.state
        return self.state

    async def ready(self):
        return self.live()

    async def model_ready(self, name, version=-1):
        self.told.append((name, version))
        return self.live()

    def metadata(self, name, version=-1):
        if name != "m":
            raise not_found(f"Request for unknown model: '{name}' is not found")
        return {
            "name": name,
            "versions": ["1", "2"],
            "platform": "onnxruntime_onnx",
            "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 4]}],
            "outputs": [{"name": "y", "datatype": "BYTES", "shape": []}],
        }

    def config(self, name, version=-1):
        return ModelConfig(name=name, max_batch_size=8)

    async def statistics(self, name="", version=-1):
        counters = Statistics()
        counters.executed(2, 10, 20, 30)
        counters.succeeded(2, 100, 40, 10, 20, 30)
        entry = counters.as_dict()
        entry["response_stats"] = {"0": {"success": {"count": 1, "ns": 9}}}
        entry["memory_usage"] = [{"type": "GPU", "id": 0, "byte_size": 5}]
        return [{"name": name or "m", "version": "1", **entry}]

    async def index(self, ready_only=False):
        self.told.append(ready_only)
        ready = {"name": "m", "version": "1", "state": "READY"}
        return [ready] if ready_only else [ready, {"name": "never", "reason": ""}]

    async def load(self, name, parameters):
        await self.go.wait()
        self.told.append((name, parameters))

    async def unload(self, name, unload_dependents=False):
        self.told.append((name, unload_dependents))


class DescribedServer:
    """A server whose models and control are Described; shared memory is real."""

    def __init__(self):
        self.options = Options.defaults()
        self.tracing = Tracer(self.options)
        regions = SharedMemoryRegions(allowed=True)
        self.memory = MemoryControl(regions, CudaRegions(regions))
        self.models = self.described = Described()
        self.control = SimpleNamespace(
            health=self.described, repository=self.described, settings=None, areas={}
        )

    def shared(self, factory):
        if factory is FrontendContext:
            return SimpleNamespace(policy=None, access_log=None, names=CallerNames())
        if factory is _reports_of:
            return LoadReports(list)
        if factory in (GrpcMethods, Readiness):
            return factory(self)
        return self.memory

    def metadata(self):
        return {"name": "triton", "version": "1.2.3", "extensions": ["sequence", "statistics"]}
