"""Engines without a GPU: TensorRT's own classes if they work without one, else fake ones.

The fake CUDA is lazy: work of a stream is done when a thread waits for it, in no other order than events
require. So work that does not wait for its copy finds memory full of 0xAA.
"""

import ctypes
import sys
import threading
from contextlib import ExitStack, nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from backend_tensorrt.backend import backend
from backend_tensorrt.facts import Bounds, Facts, Port
from backend_tensorrt.library import Library
from core_testing.served import Served

from core import dtypes


class FakeStream:
    def __init__(self, cuda):
        self.cuda, self.ptr, self.done, self.todo, self.captured = cuda, id(self), 0, [], None

    def add(self, action, what):
        """Add work to the stream and return its number, -1 during a capture."""
        if self.captured is not None:
            self.captured.append((action, what))
            return -1
        self.todo.append((action, what))
        return len(self.todo)

    def run(self, until):
        with self.cuda.lock:
            while self.done < until:
                action, what = self.todo[self.done]
                self.done += 1
                action()
                self.cuda.history.append((self.cuda.names.get(self.ptr, ""), what))

    def synchronize(self):
        self.run(len(self.todo))

    def wait_event(self, event):
        stream, mark = event.stream, event.mark
        self.add(lambda: stream.run(mark), "wait")

    def begin_capture(self):
        self.captured = []

    def end_capture(self):
        actions, self.captured = self.captured, None
        if self.cuda.no_capture:
            raise RuntimeError("cudaErrorStreamCaptureUnsupported")
        return FakeGraph(self.cuda, actions)


class FakeGraph:
    def __init__(self, cuda, actions):
        self.cuda, self.actions = cuda, actions

    def launch(self, stream):
        self.cuda.launched += 1
        for action, what in self.actions:
            stream.add(action, "graph of " + what)


class FakeEvent:
    def __init__(self, busy):
        self.busy = busy

    def record(self, stream):
        self.stream, self.mark = stream, len(stream.todo)

    def synchronize(self):
        self.stream.run(self.mark)


class FakeMemory:
    def __init__(self, size):
        self.array = np.full(size + 256, 0xAA, np.uint8)
        self.ptr = -(-self.array.ctypes.data // 256) * 256


class FakeCuda:
    """A Cuda without a GPU.

    history   work that streams have done, in order
    """

    def __init__(self):
        self.lock = threading.RLock()
        self.streams, self.history, self.names = {}, [], {}
        self.launched, self.no_capture, self.busy, self.priorities = 0, False, set(), set()
        self.devices, self.version, self.pinned_sizes = 1, (9, 0), []

    def count(self):
        if isinstance(self.devices, Exception):
            raise self.devices
        return self.devices

    def capability(self, device):
        return self.version

    def on(self, device):
        return nullcontext()

    def stream(self, priority):
        made = FakeStream(self)
        self.streams[made.ptr] = made
        self.priorities.add(priority)
        return made

    def event(self, busy):
        self.busy.add(busy)
        return FakeEvent(busy)

    def memory(self, size, stream):
        assert size > 0
        return FakeMemory(size)

    def input_memory(self, size, stream):
        return self.memory(size, stream)

    def pinned(self, size):
        self.pinned_sizes.append(size)
        return np.full(size, 0xBB, np.uint8)

    def trim(self):
        self.history.append(("", "trim"))

    def to_device(self, target, source, size, stream):
        stream.add(lambda: ctypes.memmove(target, source, size), f"to_device {size}")

    def to_host(self, target, source, size, stream):
        stream.add(lambda: ctypes.memmove(target, source, size), f"to_host {size}")

    def within(self, target, source, size, stream):
        stream.add(lambda: ctypes.memmove(target, source, size), f"within {size}")


def at(address, shape, dtype):
    """Return the array at an address."""
    count = int(np.prod(shape))
    if not count:
        return np.empty(shape, dtype)
    raw = (ctypes.c_uint8 * (count * np.dtype(dtype).itemsize)).from_address(address)
    return np.frombuffer(raw, dtype).reshape(shape)


class FakeEngine:
    """An ICudaEngine of ports and a function {input: array} → {output: array}.

    shape_functions   output → function of the shapes and values of the inputs that returns its shape, with -1
                      for a size that is unknown before the execution
    """

    def __init__(self, trt, cuda, ports, function, shape_functions):
        self.trt, self.cuda, self.function, self.shape_functions = (
            trt,
            cuda,
            function,
            shape_functions,
        )
        self.ports = {port.name: port for port in ports}
        self.num_io_tensors = len(ports)
        self.num_optimization_profiles = max(len(port.shapes) for port in ports)
        self.contexts, self.fails = [], ""

    def get_tensor_name(self, i):
        return list(self.ports)[i]

    def get_tensor_mode(self, name):
        mode = self.trt.TensorIOMode
        return mode.INPUT if self.ports[name].is_input else mode.OUTPUT

    def get_tensor_location(self, name):
        place = self.trt.TensorLocation
        return place.HOST if self.ports[name].on_host else place.DEVICE

    def get_tensor_dtype(self, name):
        return getattr(self.trt.DataType, self.ports[name].type)

    def get_tensor_format_desc(self, name):
        return self.ports[name].format or "Row major linear FP32 format (kLINEAR)"

    def get_tensor_vectorized_dim(self, name):
        return self.ports[name].vector

    def get_tensor_components_per_element(self, name):
        return self.ports[name].lanes

    def get_tensor_shape(self, name):
        return self.trt.Dims(self.ports[name].dims)

    def get_tensor_profile_shape(self, name, profile):
        bounds = self.ports[name].shapes[profile]
        return [self.trt.Dims(each) for each in (bounds.least, bounds.best, bounds.most)]

    def get_tensor_profile_values(self, profile, name):
        bounds = self.ports[name].values[profile]
        return [list(each) for each in (bounds.least, bounds.best, bounds.most)]

    def create_execution_context(self, strategy):
        self.contexts.append(FakeContext(self, strategy))
        return self.contexts[-1]


class FakeContext:
    def __init__(self, engine, strategy):
        self.engine, self.strategy, self.profile, self.runs = engine, strategy, None, 0
        self.shapes, self.addresses, self.allocators = {}, {}, {}

    def set_optimization_profile_async(self, profile, stream):
        self.profile = profile
        return True

    def set_input_shape(self, name, shape):
        self.shapes[name] = shape
        return self.engine.ports[name].shapes[self.profile].hold(shape)

    def set_tensor_address(self, name, address):
        assert address, name
        assert self.engine.ports[name].on_host or address % 256 == 0
        self.addresses[name] = address
        return True

    def set_output_allocator(self, name, allocator):
        self.allocators[name] = allocator
        return True

    def infer_shapes(self):
        return [n for n, p in self.engine.ports.items() if p.is_input and n not in self.shapes]

    def get_tensor_shape(self, name):
        port = self.engine.ports[name]
        if port.is_input:
            return self.shapes[name]
        if name in self.engine.shape_functions:
            values = {n: self._value(n) for n, p in self.engine.ports.items() if self._on_host(p)}
            return self.engine.shape_functions[name](self.shapes, values)
        first = next(iter(self.shapes.values()))
        sizes = [a if b < 0 else b for a, b in zip(first, port.dims, strict=False)]
        return tuple(sizes)

    @staticmethod
    def _on_host(port):
        return port.is_input and port.on_host

    def _value(self, name, addresses=None, shapes=None):
        port = self.engine.ports[name]
        return at(
            (addresses or self.addresses)[name], (shapes or self.shapes)[name], port.dtype.numpy
        )

    def execute_async_v3(self, ptr):
        engine = self.engine
        if engine.fails:
            engine.logger.log(SimpleNamespace(name="ERROR"), engine.fails)
            return False
        self.runs += 1
        addresses, shapes = dict(self.addresses), dict(self.shapes)
        stream = engine.cuda.streams[ptr]
        known = {n: self.get_tensor_shape(n) for n, p in engine.ports.items() if not p.is_input}
        asking = [name for name, shape in known.items() if min(shape, default=0) < 0]

        def compute():
            inputs = {n: self._value(n, addresses, shapes) for n in shapes}
            return engine.function(**inputs)

        if asking:
            stream.synchronize()
            for name, array in compute().items():
                if name in asking:
                    array = np.ascontiguousarray(array)
                    allocator = self.allocators[name]
                    addresses[name] = allocator.reallocate_output_async(
                        name, 0, array.nbytes, 256, ptr
                    )
                    allocator.notify_shape(name, engine.trt.Dims(array.shape))
                    known[name] = array.shape

        def write():
            for name, array in compute().items():
                target = at(addresses[name], known[name], engine.ports[name].dtype.numpy)
                if target.size:
                    np.copyto(target, array)

        stream.add(write, "execute")
        return True


class FakeTensorRt:
    """A TensorRT with fake Runtime, engines and contexts. Its other classes are those of the lean runtime."""

    def __init__(self, real):
        self.cuda, self.engines, self.reports, self.runtimes = FakeCuda(), {}, [], []
        fake = self

        class Runtime:
            num_DLA_cores = 2
            DLA_core = -1
            engine_host_code_allowed = False

            def __init__(self, logger):
                self.logger = logger
                fake.runtimes.append(self)

            def deserialize_cuda_engine(self, data):
                for report in fake.reports:
                    self.logger.log(SimpleNamespace(name="ERROR"), report)
                found = fake.engines.get(bytes(data))
                if found is not None:
                    found.logger = self.logger
                return found

        names = ("DataType", "Dims", "ExecutionContextAllocationStrategy", "ILogger")
        names += ("IOutputAllocator", "TensorIOMode", "TensorLocation", "get_plugin_registry")
        self.trt = SimpleNamespace(
            Runtime=Runtime, __version__="11.4.0.106", **{n: getattr(real, n) for n in names}
        )
        self.library = Library(self.trt, "full", self.cuda)

    def engine(self, ports, function, shapes=None, data=b"engine"):
        """Make the engine of files with the content `data`."""
        self.engines[data] = FakeEngine(self.trt, self.cuda, ports, function, shapes or {})
        return self.engines[data]


def port(name, *bounds, kind="FLOAT", values=(), **more):
    """Return an input with (least, best, most) shapes for each profile, or an output without them."""
    shapes = tuple(Bounds(*each) for each in bounds)
    dims = more.pop("dims", None)
    if dims is None:
        dims = tuple(
            low if all(b.least[i] == b.most[i] == low for b in shapes) else -1
            for i, low in enumerate(shapes[0].least)
        )
    held = tuple(Bounds(*each) if each else None for each in values)
    names = {"FLOAT": "FP32", "HALF": "FP16", "FP8": "UINT8"}
    dtype = dtypes.BY_NAME.get(names.get(kind, kind))
    return Port(name, bool(shapes), kind, dtype, dims, shapes=shapes, values=held, **more)


ROWS = ((1, 3), (4, 3), (8, 3))


@pytest.fixture(name="port")
def port_fixture():
    return port


@pytest.fixture
def facts():
    """facts(ports…): the Facts of an engine."""
    return lambda *ports: Facts(ports, max(len(each.shapes) for each in ports))


@pytest.fixture
def fake(monkeypatch):
    made = FakeTensorRt(pytest.importorskip("tensorrt_lean_bindings"))
    module = sys.modules["backend_tensorrt.backend"]  # the package has its backend under that name
    monkeypatch.setattr(module, "library", lambda wanted, model: made.library)
    monkeypatch.setattr("core.server.gpus", lambda: (0,))
    monkeypatch.setattr(backend, "_loader", None)
    return made


@pytest.fixture
def twice(fake):
    """An engine y = 2x of 1 to 8 rows of 3."""
    return fake.engine([port("x", ROWS), port("y", dims=(-1, 3))], lambda x: {"y": 2 * x})


@pytest.fixture
def serve(tmp_path, fake):
    """serve(config="", settings=None, files=None): serve a model named m.

    files   name → content; None for a model.plan
    """
    with ExitStack() as running:

        def start(config="", settings=None, files=None, **options):
            folder = tmp_path / "models" / "m" / "1"
            folder.mkdir(parents=True)
            for name, data in (files or {"model.plan": b"engine"}).items():
                (folder / name).write_bytes(data)
            if config is not None:
                (folder.parent / "config.pbtxt").write_text('platform: "tensorrt_plan" ' + config)
            served = running.enter_context(
                Served(
                    backend,
                    tmp_path / "models",
                    backend_config={"tensorrt": settings or {}},
                    **options,
                )
            )
            served.load("m")
            return served

        yield start
