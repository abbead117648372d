"""Backend and Model: compiled models and how instances share them."""

from __future__ import annotations

import logging
import threading
from typing import Any

import openvino as ov

from backend_openvino.check import check
from backend_openvino.complete import add_extension, complete
from backend_openvino.fitting import fitted
from backend_openvino.instance import OpenVinoInstance
from backend_openvino.reading import model_file, ov_text, read_model, version
from backend_openvino.settings import PARAMETERS, Settings, settings_of
from backend_openvino.tensors import Ports, is_static, ports_of
from core.backend import Backend, Model
from core.errors import CoreError, internal, invalid

logger = logging.getLogger("core")

# The first array of a tensor prepares OpenVINO's access to numpy. Two threads that do so at once wait for
# each other, one of them with the interpreter's lock: the process stands still. An import has one thread.
_ = ov.Tensor(ov.Type.f32, ov.Shape([1])).data


class OpenVinoModel(Model):
    """One model version, compiled once for each set of cores to which instances are bound.

    A compiled model runs several infer requests at once; each instance has one. The first instance of a set
    compiles it on its own thread, because OpenVINO counts and places its threads by the cores of that thread.

    settings        from the configuration
    ports           inputs and outputs in the file
    can_break_off   whether a run may be cancelled
    """

    settings: Settings
    ports: Ports
    can_break_off = False

    def load(self) -> None:
        """Read the file and fit the model to the configuration. The first instance compiles it.

        Raises CoreError if the file cannot be read, or does not fit the configuration.
        """
        self.settings = settings_of(self.config)
        self._runtime = ov.Core()
        if self.settings.extension:
            add_extension(self._runtime, self.settings.extension, self.name)
        self._file = model_file(self.config, self.path)
        model = read_model(self._runtime, self._file, self.name)
        self.ports = ports_of(model)
        check(self.config, self.ports, reshapes=self.settings.reshapes)
        self._fitted, self.rows = fitted(model, self.config, self.ports, self.settings)
        # After a cancelled run with variable shapes, the next run of any infer request returns values of the
        # cancelled run, or crashes (OpenVINO 2026.4).
        self.can_break_off = self.settings.device == "CPU" and is_static(self._fitted)
        self._compiled: dict[frozenset[int], Any] = {}
        self._opening = threading.Lock()  # instances open at the same time, each on its own thread

    def compiled_for(self, cores: frozenset[int]) -> Any:
        """Return the openvino.CompiledModel of an instance.

        cores   cores to which the calling thread is bound; empty for none
        Thread-safe. Raises CoreError if the device is missing, or cannot run the model.
        """
        with self._opening:
            if cores not in self._compiled:
                self._compiled[cores] = self._compile()
            return self._compiled[cores]

    def _compile(self) -> Any:
        device, properties = self.settings.device, dict(self.settings.properties)
        try:
            if device == "CPU":
                # The event loop of the server may run an instance, and must not be bound to one core.
                properties["ENABLE_CPU_PINNING"] = False
                self._leave_out_unknown(properties)
            return self._runtime.compile_model(self._fitted, device, properties)
        except Exception as error:
            raise self._not_compiled(error) from error

    def _leave_out_unknown(self, properties: dict[str, Any]) -> None:
        """Remove properties that this version of OpenVINO does not have for the CPU, with a warning."""
        known = self._runtime.get_property("CPU", "SUPPORTED_PROPERTIES")
        for name in set(properties) - set(known):
            del properties[name]
            logger.warning(
                "model '%s': OpenVINO %s has no '%s' for the CPU; it is left out",
                self.name,
                version(),
                name,
            )

    def _not_compiled(self, error: Exception) -> CoreError:
        there = self._runtime.available_devices
        device = self.settings.device
        first = device.partition(":")[2].split(",")[0] or device
        if device != "AUTO" and first.split(".")[0] not in {each.split(".")[0] for each in there}:
            return invalid(
                f"unable to load model '{self.name}': OpenVINO {version()} finds no device "
                f"'{first}' here, only {', '.join(there)}; change the parameter 'TARGET_DEVICE', or "
                f"install the driver ({ov_text(error)})"
            )
        return internal(
            f"model '{self.name}': OpenVINO {version()} cannot compile '{self._file}' for {device}: "
            f"{ov_text(error)}"
        )

    def unload(self) -> None:
        self._compiled = {}
        self._fitted = self._runtime = None


backend = Backend(
    model=OpenVinoModel,
    instance=OpenVinoInstance,
    complete=complete,
    instances={"CPU": 1},
    known_parameters=PARAMETERS,
    known_settings=(),
)
