"""Backend and Model: an exported function, and its compiled forms on each device."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import jax

from backend_jax.check import check
from backend_jax.complete import complete
from backend_jax.functions import CompiledFunctions, run_on_the_calling_thread
from backend_jax.instance import JaxInstance
from backend_jax.reading import model_file, ports_of, read
from backend_jax.settings import PARAMETERS, Settings, settings_of
from backend_jax.tensors import Ports
from core.backend import Backend, Model
from core.errors import invalid

_PLATFORMS = {"CPU": ("cpu",), "GPU": ("cuda", "rocm")}


class JaxModel(Model):
    """One model version. Instances of a device share the compiled functions.

    ports   arguments and results of the function
    """

    settings: Settings
    ports: Ports

    def load(self) -> None:
        """Read the file and compare it with the configuration. The first instance of a device compiles.

        Raises CoreError if the file cannot be read, or does not fit the configuration.
        """
        self.settings = settings_of(self.config)
        self._file: Path = model_file(self.config, self.path)
        self._exported: Any = read(self._file, self.name)
        self.ports = ports_of(self._exported, self.settings, self.name)
        check(self.config, self.ports)
        self._functions: dict[tuple[str, int], CompiledFunctions] = {}
        self._opening = threading.Lock()

    def functions_on(self, device: Any) -> CompiledFunctions:
        """Return the functions on the device of an instance. Thread-safe.

        Raises CoreError(INVALID) if the function was not exported for it, or JAX does not find it.
        """
        with self._opening:
            key = device.kind, device.id
            if key not in self._functions:
                found = self._device(device)
                self._functions[key] = CompiledFunctions(
                    self._exported, self.ports, found, self.settings.shapes
                )
            return self._functions[key]

    def _device(self, device: Any) -> Any:
        platforms = tuple(self._exported.platforms)
        if not set(platforms) & set(_PLATFORMS[device.kind]):
            raise invalid(
                f"unable to load model '{self.name}': the function in '{self._file}' was exported for "
                f"{', '.join(platforms)}, the instance has KIND_{device.kind}; export it with "
                f"platforms={list(_PLATFORMS[device.kind][:1])}, or change instance_group in config.pbtxt"
            )
        try:
            return jax.devices("cpu")[0] if device.kind == "CPU" else jax.devices("gpu")[device.id]
        except (RuntimeError, IndexError) as error:
            raise invalid(
                f"unable to load model '{self.name}': JAX finds no device {device.kind} {device.id} here "
                f"({' '.join(str(error).split())}); install backend-jax[cuda], or change instance_group in "
                "config.pbtxt"
            ) from error

    def unload(self) -> None:
        self._functions = {}
        self._exported = None


run_on_the_calling_thread()
backend = Backend(
    model=JaxModel,
    instance=JaxInstance,
    complete=complete,
    instances={"CPU": 1, "GPU": 1},
    known_parameters=PARAMETERS,
    known_settings=(),
)
