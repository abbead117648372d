"""Backend and Model: what core calls; who shares a compiled model."""

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


class OpenVinoModel(Model):
    """One version: compiled once, whatever the number of its instances.

    A compiled model runs several requests at once, each instance has one of them. For instances whose
    host policy has cores it is compiled again by a thread that is bound to them, since that is where
    OpenVINO counts and places its threads.

    settings, ports   of its configuration and file
    can_break_off     whether a run may be ended before its time
    """

    settings: Settings
    ports: Ports
    can_break_off = False

    def load(self) -> None:
        """Read the file and make it fit the configuration; compiling is left to the first instance."""
        self.settings = settings_of(self.config)
        self._runtime = ov.Core()
        if self.settings.extension:
            add_extension(self._runtime, self.settings.extension, self.name)
        self._file = model_file(self.config, self.path)
        model = read_model(self._runtime, self._file, self.name)
        self.ports = ports_of(model)
        check(self.config, self.ports, reshapes=self.settings.reshapes)
        self._fitted, self.rows = fitted(model, self.config, self.ports, self.settings)
        # After a run of variable shapes that was broken off, OpenVINO 2026.4 answers with values of that
        # run, or crashes, whichever infer request comes next.
        self.can_break_off = self.settings.device == "CPU" and is_static(self._fitted)
        self._compiled: dict[frozenset[int], Any] = {}
        self._opening = threading.Lock()  # instances open at the same time, each on its thread

    def compiled_for(self, cores: frozenset[int]) -> Any:
        """The openvino.CompiledModel of an instance that is bound to `cores`, if to any. Any thread.

        Raises CoreError if the device is not there, or cannot run the model.
        """
        with self._opening:
            if cores not in self._compiled:
                self._compiled[cores] = self._compile()
            return self._compiled[cores]

    def _compile(self) -> Any:
        device, properties = self.settings.device, dict(self.settings.properties)
        try:
            if device == "CPU":
                # An instance may be run by the server's event loop, which must not be moved to one core.
                properties["ENABLE_CPU_PINNING"] = False
                self._leave_out_unknown(properties)
            return self._runtime.compile_model(self._fitted, device, properties)
        except Exception as error:
            raise self._not_compiled(error) from error

    def _leave_out_unknown(self, properties: dict[str, Any]) -> None:
        """A setting that this version of OpenVINO has for other devices only is no reason to fail."""
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
