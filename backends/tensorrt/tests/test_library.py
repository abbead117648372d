"""TensorRT and CuPy: imports, errors for missing ones, and the attributes that the code uses."""

import ast
import gc
import inspect
import sys
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType, SimpleNamespace

import backend_tensorrt
import numpy as np
import pytest
from backend_tensorrt import facts as facts_module
from backend_tensorrt.backend import backend
from backend_tensorrt.context import allocator_class
from backend_tensorrt.library import RUNTIMES, Library, cupy, library, tensorrt
from backend_tensorrt.loading import Loader
from backend_tensorrt.reports import Reports, logger_of
from backend_tensorrt.settings import BackendSettings, backend_settings_of, settings_of
from core_testing.served import Served

from core.config import parse_text
from core.devices.visible import gpus
from core.errors import CoreError

FOLDER = Path(backend_tensorrt.__file__).parent


@pytest.fixture
def lean():
    """The lean runtime's real bindings."""
    return pytest.importorskip("tensorrt_lean_bindings")


@pytest.fixture
def installed(monkeypatch):
    """installed(name="error text" or a version, …): make only these modules of TensorRT importable."""
    names = {name for names in RUNTIMES.values() for name in names} | {"cupy"}

    def make(**modules):
        class Finder:
            @staticmethod
            def find_spec(name, path=None, target=None):
                if name in modules and isinstance(modules[name], Exception):
                    raise modules[name]
                if name in names:
                    raise ModuleNotFoundError(f"No module named '{name}'", name=name)

        for name in names:
            monkeypatch.delitem(sys.modules, name, raising=False)
        for name, version in modules.items():
            if isinstance(version, str):
                module = ModuleType(name)
                module.__version__ = version
                monkeypatch.setitem(sys.modules, name, module)
        monkeypatch.setattr(sys, "meta_path", [Finder, *sys.meta_path])

    return make


def test_the_full_runtime_is_preferred(installed):
    installed(tensorrt="11.4.0.106", tensorrt_lean="11.4.0.106")

    assert tensorrt("", "m")[0] == "full"
    assert tensorrt("lean", "m")[0] == "lean"


def test_modules_of_wheels_with_bindings_in_their_names(installed):
    installed(tensorrt_dispatch_bindings="10.13.3.9")

    assert tensorrt("", "m")[1].__name__ == "tensorrt_dispatch_bindings"


@pytest.mark.parametrize(
    ("modules", "wanted", "expected"),
    [
        (
            {},
            "",
            r"'m': TensorRT is not installed; .*wheels 'backend-tensorrt\[cu13\]'.*\[lean\]",
        ),
        (
            {},
            "lean",
            r"its lean runtime.*pip install --find-links wheels 'backend-tensorrt\[lean\]'$",
        ),
        (
            {},
            "dispatch",
            "pip install tensorrt-dispatch-cu13-bindings tensorrt-dispatch-cu13-libs$",
        ),
        ({"tensorrt": "8.6.1"}, "", r"tensorrt 8\.6\.1 is too old, this backend needs 10 or newer"),
        (
            {"tensorrt_lean": ImportError("libnvinfer_lean.so.11: cannot open shared object file")},
            "lean",
            "tensorrt_lean cannot be imported: ImportError: libnvinfer_lean.*whose name ends with -libs",
        ),
        (
            {"tensorrt": RuntimeError("is broken")},
            "",
            "tensorrt cannot be imported: RuntimeError: is broken",
        ),
        ({}, "small", "runtime=small: it must be one of full, lean, dispatch"),
    ],
)
def test_an_error_for_a_missing_library_has_the_command(installed, modules, wanted, expected):
    installed(**modules)

    with pytest.raises(CoreError, match=expected.replace('"m"', "'m'")):
        tensorrt(wanted, "m")


@pytest.mark.parametrize(
    ("modules", "expected"),
    [
        ({}, r"CuPy, .* is not installed; install it with: .*wheels 'backend-tensorrt\[cu13\]'"),
        ({"cupy": ImportError("libcudart")}, "CuPy, .* cannot be imported: ImportError: libcudart"),
    ],
)
def test_a_model_without_cupy(installed, modules, expected):
    installed(tensorrt="11.4.0.106", **modules)

    with pytest.raises(CoreError, match=expected):
        library("", "m")


# Names of variables in the code → classes of TensorRT, which must have each attribute that the code uses of
# these variables.
OBJECTS = {
    "engine": "ICudaEngine",
    "engine.engine": "ICudaEngine",
    "context": "IExecutionContext",
    "self._context": "IExecutionContext",
    "made": "IExecutionContext",
    "runtime": "Runtime",
}
WHERE = {
    "facts.py": {"engine"},
    "loading.py": {"runtime"},
    "context.py": set(OBJECTS) - {"engine", "runtime"},
}


def asked(file):
    """Return (object, attribute) of each use of a name in OBJECTS in a file."""
    tree = ast.parse((FOLDER / file).read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in WHERE[file]:
            yield ast.unparse(node.value), node.attr


@pytest.mark.parametrize("file", WHERE)
def test_tensorrt_has_all_attributes_that_the_code_uses(lean, file):
    found = set(asked(file))

    assert len(found) >= 3
    for name, attribute in found:
        assert hasattr(getattr(lean, OBJECTS[name]), attribute), f"{OBJECTS[name]}.{attribute}"


def test_tensorrt_has_all_module_names_that_the_code_uses(lean):
    names = set()
    for path in FOLDER.glob("*.py"):
        if path.name == "conformance.py":  # it builds an engine; the lean runtime has no builder
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) in (
                "trt",
                "self.library.trt",
            ):
                names.add(node.attr)

    assert {"Runtime", "ILogger", "IOutputAllocator", "TensorIOMode", "TensorLocation"} <= names
    only_full = {"init_libnvinfer_plugins"}  # the code checks with hasattr
    assert [name for name in names - only_full if not hasattr(lean, name)] == []


def test_members_of_enumerations(lean):
    assert set(facts_module._DTYPES) <= set(lean.DataType.__members__)
    assert {"INPUT", "OUTPUT"} <= set(lean.TensorIOMode.__members__)
    assert {"DEVICE", "HOST"} <= set(lean.TensorLocation.__members__)
    assert {"STATIC", "ON_PROFILE_CHANGE"} <= set(
        lean.ExecutionContextAllocationStrategy.__members__
    )


@pytest.mark.parametrize("name", facts_module._DTYPES)
def test_datatypes_have_the_sizes_of_tensorrt(lean, name):
    assert getattr(lean.DataType, name).itemsize == facts_module._DTYPES[name].byte_size


def test_positions_of_arguments(lean):
    """The bindings exchange the names of the two arguments: the first one is a number."""
    first, second = lean.ICudaEngine.get_tensor_profile_values.__doc__.split("(self")[1].split(",")[
        1:3
    ]

    assert "SupportsInt" in first or "int" in first.split(":")[1]
    assert "str" in second


def test_a_logger_of_tensorrts_class_keeps_errors(lean, caplog):
    reports = Reports()
    logger = logger_of(lean, reports)

    logger.log(lean.ILogger.Severity.ERROR, "first\n line")
    logger.log(lean.ILogger.Severity.ERROR, "first\n line")
    logger.log(lean.ILogger.Severity.WARNING, "careful")

    assert isinstance(logger, lean.ILogger)
    assert reports.take() == "first line" and reports.take() == ""
    assert [(r.levelname, r.message) for r in caplog.records] == [("WARNING", "TensorRT: careful")]


def test_an_allocator_of_tensorrts_class(lean):
    class Buffer:
        def at_least(self, size):
            return 256 * size

    allocator = allocator_class(lean)(Buffer())

    assert isinstance(allocator, lean.IOutputAllocator)
    assert allocator.reallocate_output_async("y", 0, 3, 256, 1) == 768
    allocator.notify_shape("y", lean.Dims((2, 5)))
    assert (allocator.address, allocator.shape) == (768, (2, 5))


def test_cupy_has_all_attributes_that_the_code_uses():
    module = cupy_or_skip()
    for name in ("Device", "Stream", "Event", "alloc", "alloc_pinned_memory", "Graph"):
        assert hasattr(module.cuda, name)
    for name in ("getDeviceCount", "memcpyAsync", "memcpyHostToDevice", "memcpyDeviceToHost"):
        assert hasattr(module.cuda.runtime, name)
    assert hasattr(module.cuda.runtime, "memcpyDeviceToDevice")
    for name in ("get_default_memory_pool", "get_default_pinned_memory_pool"):
        assert hasattr(getattr(module, name)(), "free_all_blocks")
    for name in ("synchronize", "wait_event", "begin_capture", "end_capture"):
        assert hasattr(module.cuda.Stream, name)
    assert {"non_blocking", "priority"} <= set(inspect.signature(module.cuda.Stream).parameters)
    assert {"block", "disable_timing"} <= set(inspect.signature(module.cuda.Event).parameters)


@pytest.mark.skipif(bool(gpus()), reason="there is a GPU")
def test_the_real_runtime_without_a_gpu_is_an_error_and_no_crash(lean, tmp_path):
    """CUDA reports a GPU that does not exist: the code must neither use nor destroy TensorRT's runtime."""
    (tmp_path / "model.plan").write_bytes(b"engine")
    cuda = SimpleNamespace(
        count=lambda: 1, capability=lambda device: (9, 0), on=lambda device: nullcontext()
    )
    loader = Loader(Library(lean, "lean", cuda), BackendSettings())

    with pytest.raises(CoreError, match=r"NVIDIA GPUs only, and none can be used here.*CUDA init"):
        loader.load(parse_text('name: "m"', "config.pbtxt"), tmp_path, 0)
    gc.collect()


def test_missing_libraries_fail_the_model_by_name_and_no_other(installed, tmp_path, monkeypatch):
    installed()
    monkeypatch.setattr(backend, "_loader", None)
    for name in ("a", "b"):
        (tmp_path / name / "1").mkdir(parents=True)
        (tmp_path / name / "1" / "model.plan").write_bytes(b"engine")
    with Served(backend, tmp_path) as served:
        for name in ("a", "b"):
            with pytest.raises(
                CoreError, match=f"model '{name}': TensorRT is not installed; .*pip install"
            ):
                served.load(name)


def cupy_or_skip():
    try:
        return cupy("m")
    except CoreError as error:
        pytest.skip(error.message)


class TestSettings:
    def of(self, text=""):
        return settings_of(parse_text(f'name: "m" {text}', "config.pbtxt"))

    def test_by_default(self):
        found = self.of()

        assert (found.strategy, found.priority, found.ahead) == ("STATIC", 0, 2)
        assert found.pinned_inputs and found.pinned_outputs and not found.busy

    def test_optimization(self):
        found = self.of(
            "optimization { priority: PRIORITY_MAX eager_batching: true gather_kernel_buffer_threshold: 4 "
            "input_pinned_memory { enable: false } cuda { graphs: true busy_wait_events: true "
            "output_copy_stream: true } }"
        )

        assert found.priority < 0 and found.ahead == 3 and found.graphs and found.busy
        assert found.output_stream and not found.pinned_inputs and found.pinned_outputs

    def test_an_unknown_strategy_is_refused(self):
        with pytest.raises(CoreError, match="one of STATIC, ON_PROFILE_CHANGE, got 'MINE'"):
            self.of(
                'parameters { key: "execution_context_allocation_strategy" value { string_value: "MINE" } }'
            )

    @pytest.mark.parametrize("value", ["true", "1", "True"])
    def test_one_engine_on_several_gpus_is_refused(self, value):
        entry = 'parameters {{ key: "enable_multi_device" value {{ string_value: "{}" }} }}'

        with pytest.raises(CoreError, match="spreads one engine over several GPUs, which this"):
            self.of(entry.format(value))
        assert not self.of(entry.format("false")).graphs

    def test_settings_of_the_command_line(self):
        found = backend_settings_of(
            {"plugins": "a.so; b.so;", "version-compatible": "TRUE", "execution-policy": "BLOCKING"}
        )

        assert found.plugins == ("a.so", "b.so")
        assert found.version_compatible and not found.shares_thread and not found.coalesces

    @pytest.mark.parametrize(
        "wrong",
        [
            {"execution-policy": "MINE"},
            {"version-compatible": "ja"},
            {"coalesce-request-input": ""},
        ],
    )
    def test_invalid_settings_are_refused(self, wrong):
        (key, value) = next(iter(wrong.items()))
        with pytest.raises(CoreError, match=f"tensorrt,{key}={value}: it must be"):
            backend_settings_of(wrong)


def test_busy_waits_and_priorities_reach_cuda(serve, twice, fake):
    serve("optimization { priority: PRIORITY_MAX cuda { busy_wait_events: true } }").ask(
        {"x": np.ones((1, 3), np.float32)}, (), "m"
    )

    assert fake.cuda.busy == {True} and max(fake.cuda.priorities) < 0
