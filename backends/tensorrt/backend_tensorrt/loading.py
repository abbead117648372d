"""Make an engine from a file.

model.plan ─► [Loader] ─► Engine, which the instances of a GPU share.
"""

from __future__ import annotations

import ctypes
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backend_tensorrt.facts import Facts, facts_of
from backend_tensorrt.library import Library
from backend_tensorrt.problems import no_gpu, no_runtime, not_loaded
from backend_tensorrt.reports import Reports, logger_of
from backend_tensorrt.settings import BackendSettings
from core.config import ModelConfig
from core.errors import invalid, unavailable

FILENAME = "model.plan"


@dataclass(frozen=True)
class Engine:
    """A deserialized engine on one GPU. Any thread may make contexts of it, which run at the same time.

    engine    the tensorrt.ICudaEngine
    runtime   the tensorrt.Runtime, which must outlive the engine
    facts     inputs, outputs and profiles
    """

    engine: Any
    runtime: Any
    facts: Facts


def model_file(config: ModelConfig, directory: Path, capability: tuple[int, int]) -> Path:
    """Return the file of a version: from cc_model_filenames, else default_model_filename, else model.plan.

    capability   compute capability of the GPU
    Raises CoreError(UNAVAILABLE) with the files that are there instead.
    """
    name = config.default_model_filename or FILENAME
    key = f"{capability[0]}.{capability[1]}"
    if key in config.cc_model_filenames:
        name = config.cc_model_filenames[key]
    path = directory / name
    if path.is_file():
        return path
    there = sorted(each.name for each in path.parent.iterdir()) if path.parent.is_dir() else []
    raise unavailable(
        f"unable to find '{path}' for model '{config.name}' on a GPU with compute capability {key} (its "
        f"folder has {', '.join(there) or 'nothing'}); put the engine there, or name its file with "
        "default_model_filename or cc_model_filenames in config.pbtxt"
    )


class Loader:
    """Make engines. A process has one Loader. Thread-safe.

    library   TensorRT and CUDA
    reports   errors that TensorRT has logged
    """

    def __init__(self, library: Library, settings: BackendSettings):
        self.library = library
        self.reports = Reports()
        self._settings = settings
        self._logger = logger_of(library.trt, self.reports)
        self._has_plugins = False
        self._lock = threading.Lock()

    def check_gpu(self, model: str, device: int) -> tuple[int, int]:
        """Return the compute capability of a GPU. Raises CoreError(UNAVAILABLE) if there is no such GPU.

        Call it first: without a GPU, TensorRT returns objects that crash the process when they are used.
        """
        cuda = self.library.cuda
        try:
            count = cuda.count()
        except Exception as error:
            raise no_gpu(model, " ".join(str(error).split())) from error
        if device >= count:
            raise no_gpu(model, f"GPU {device} was asked for, there are {count}" if count else "")
        return cuda.capability(device)

    def load(self, config: ModelConfig, directory: Path, device: int, dla: int = -1) -> Engine:
        """Return the engine of a version on a GPU. Takes long for large files.

        dla   DLA core for the layers that run on a DLA, -1 for none
        Raises CoreError with the file, the reason and advice.
        """
        model = config.name
        capability = self.check_gpu(model, device)
        path = model_file(config, directory, capability)
        with self.library.cuda.on(device):
            self._load_plugins(model)
            runtime = self._runtime(model, dla)
            self.reports.take()
            engine = runtime.deserialize_cuda_engine(path.read_bytes())
            report = self.reports.take()
        if engine is None:
            raise not_loaded(
                path,
                model,
                report,
                version=self.library.version,
                runtime=self.library.runtime,
                gpu=f"{capability[0]}.{capability[1]}",
            )
        return Engine(engine, runtime, facts_of(engine, self.library.trt))

    def _runtime(self, model: str, dla: int) -> Any:
        self.reports.take()
        runtime = self.library.trt.Runtime(self._logger)
        if report := self.reports.take():
            # The object has a null pointer: its use or its end crashes the process, so it must live forever.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(runtime))
            raise no_runtime(model, report)
        if self._settings.version_compatible:
            runtime.engine_host_code_allowed = True
        if dla >= 0:
            if dla >= runtime.num_DLA_cores:
                raise invalid(
                    f"model '{model}': instance_group.secondary_devices asks for DLA core {dla}, this device "
                    f"has {runtime.num_DLA_cores}"
                )
            runtime.DLA_core = dla
        return runtime

    def _load_plugins(self, model: str) -> None:
        """Load the plugins of TensorRT and of the command line; do nothing if that is done already.

        Raises CoreError(UNAVAILABLE) for a library that is missing or cannot be loaded.
        """
        with self._lock:
            if self._has_plugins:
                return
            trt = self.library.trt
            if hasattr(trt, "init_libnvinfer_plugins"):  # only in the full runtime
                trt.init_libnvinfer_plugins(self._logger, "")
            for path in self._settings.plugins:
                self._load_plugin(model, path)
            self._has_plugins = True

    def _load_plugin(self, model: str, path: str) -> None:
        if not Path(path).is_file():
            raise unavailable(
                f"model '{model}': there is no file '{path}'; give the absolute path of the library in "
                "--backend-config=tensorrt,plugins=…"
            )
        self.reports.take()
        if self.library.trt.get_plugin_registry().load_library(path) is None:
            report = self.reports.take() or "no reason given; it may be loaded already"
            raise unavailable(
                f"model '{model}': TensorRT {self.library.version} cannot load the plugins of '{path}': "
                f"{report}"
            )
