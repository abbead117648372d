"""Backend and Model: engines and how instances share them."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from backend_tensorrt.complete import complete_with
from backend_tensorrt.instance import TensorRtInstance
from backend_tensorrt.library import library
from backend_tensorrt.loading import Engine, Loader
from backend_tensorrt.settings import (
    BACKEND_SETTINGS,
    PARAMETERS,
    BackendSettings,
    Settings,
    backend_settings_of,
    settings_of,
)
from core.backend import Backend, Model
from core.completion import is_described
from core.config import ModelConfig


class TensorRtBackend(Backend):
    """TensorRT in this process; TensorRT and CuPy are imported for the first model.

    Settings (--backend-config=tensorrt,…): see settings.BackendSettings.
    """

    settings: BackendSettings
    _loader: Loader | None = None

    def open(self) -> None:
        """Read the settings. Raises CoreError(INVALID) for an invalid one."""
        self.settings = backend_settings_of(self.config)
        self._lock = threading.Lock()

    def loader(self, model: str) -> Loader:
        """Return the Loader of the process, which makes engines. Thread-safe.

        model   name of the model for errors
        Raises CoreError(UNAVAILABLE) if TensorRT or CuPy is missing or broken.
        """
        with self._lock:
            if self._loader is None:
                self._loader = Loader(library(self.settings.runtime, model), self.settings)
            return self._loader


class TensorRtModel(Model):
    """One model version. It has an engine for each GPU (and DLA core), which the instances there share.

    loader     the Loader of the process
    settings   from the configuration
    """

    backend: TensorRtBackend
    loader: Loader
    settings: Settings

    def load(self) -> None:
        """Read the settings. Instances make the engines when they open.

        Raises CoreError for an invalid setting, and if TensorRT or CuPy is missing.
        """
        self.settings = settings_of(self.config)
        self.loader = self.backend.loader(self.name)
        self._engines: dict[tuple[int, int], Engine] = {}
        self._threads: dict[int, ThreadPoolExecutor] = {}
        self._lock = threading.Lock()  # instances open at the same time, each on its own thread

    def engine_on(self, device: int, dla: int) -> Engine:
        """Return the engine on a GPU. Thread-safe. Raises CoreError if it cannot be made.

        dla   DLA core, -1 for none
        """
        with self._lock:
            if (device, dla) not in self._engines:
                self._engines[device, dla] = self.loader.load(self.config, self.path, device, dla)
            return self._engines[device, dla]

    def starting_thread(self, device: int, name: str) -> tuple[ThreadPoolExecutor, bool]:
        """Return the thread that starts the batches of an instance, and whether instances share it.

        device   number of the GPU; the instances of this model on it share a thread if the settings say so
        name     of the instance
        """
        if not self.backend.settings.shares_thread:
            return ThreadPoolExecutor(1, f"tensorrt-start-{name}"), False
        with self._lock:
            if device not in self._threads:
                self._threads[device] = ThreadPoolExecutor(
                    1, f"tensorrt-start-{self.name}-{device}"
                )
            return self._threads[device], True

    def unload(self) -> None:
        for thread in getattr(self, "_threads", {}).values():
            thread.shutdown()
        devices = {device for device, _ in getattr(self, "_engines", {})}
        self._engines = {}
        for device in devices:
            with self.loader.library.cuda.on(device):
                self.loader.library.cuda.trim()


def complete(config: ModelConfig, path: Path, backend: Backend) -> None:
    """Complete a configuration in place from the engine.

    Loads the engine on the first GPU that instance_group names, else on GPU 0. Does nothing if every input
    and output is described. Raises CoreError if the engine cannot be read.
    """
    assert isinstance(backend, TensorRtBackend)
    if is_described(config):
        return
    device = next((gpu for group in config.instance_group for gpu in group.gpus), 0)
    complete_with(config, backend.loader(config.name).load(config, path, device).facts)


backend = TensorRtBackend(
    model=TensorRtModel,
    instance=TensorRtInstance,
    complete=complete,
    instances={"GPU": 1},
    known_parameters=PARAMETERS,
    known_settings=BACKEND_SETTINGS,
)
