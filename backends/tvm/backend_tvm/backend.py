"""Backend and Model: a compiled module, and the virtual machines of its instances."""

from __future__ import annotations

from typing import Any

from backend_tvm.check import check
from backend_tvm.complete import complete
from backend_tvm.instance import TvmInstance
from backend_tvm.machine import LoadedModule, Machine
from backend_tvm.reading import read_model
from backend_tvm.results import with_outputs
from backend_tvm.settings import KEYS, PARAMETERS, Settings, settings_of
from backend_tvm.tensors import Ports
from core.backend import Backend, Model


class TvmModel(Model):
    """One model version.

    ports   inputs and outputs of the function; outputs are not known until the first instance, if the file
            does not have them
    """

    settings: Settings
    ports: Ports

    def load(self) -> None:
        """Read the files, compare them with the configuration, and load the library.

        Raises CoreError if the files cannot be read, or do not fit each other or the configuration.
        """
        self.settings = settings_of(self.config)
        found = read_model(self.config, self.path, self.settings)
        self.ports = found.ports
        check(self.config, self.ports)
        self._loaded = LoadedModule(found, self.name)

    def machine_on(self, device: Any) -> Machine:
        """Return a virtual machine on the device of an instance.

        Raises CoreError if the module is not for it, or its outputs do not fit the configuration.
        """
        if not self.ports.outputs_known:
            self.ports = with_outputs(
                self.ports, self._loaded, device.kind, device.id, self.settings, self.name
            )
            check(self.config, self.ports)
        return self._loaded.machine(device.kind, device.id, self.settings)

    def unload(self) -> None:
        self._loaded.close()


backend = Backend(
    model=TvmModel,
    instance=TvmInstance,
    complete=complete,
    instances={"CPU": 1},
    known_parameters=PARAMETERS,
    known_settings=KEYS,
)
