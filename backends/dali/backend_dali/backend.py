"""Backend and Model: the pipeline of a version."""

from __future__ import annotations

from typing import Any

from backend_dali.check import check, check_device
from backend_dali.complete import complete
from backend_dali.framework import import_dali, release_memory
from backend_dali.instance import DaliInstance
from backend_dali.reading import ReadModel, read_model
from backend_dali.settings import KEYS, PARAMETERS, Settings, releases, settings_of
from core.backend import Backend, Model


class DaliModel(Model):
    """One model version.

    read   its pipeline, which each instance makes anew
    """

    settings: Settings
    read: ReadModel

    def load(self) -> None:
        """Read the pipeline, and compare it with the configuration.

        Raises CoreError if it cannot be read, or does not fit the configuration.
        """
        self.settings = settings_of(self.config)
        self._releases = releases(self.backend.config)
        self.read = read_model(self.config, self.path, self.settings)
        check(self.config, self.read)
        import_dali(self.name)

    def check_device(self, device: Any) -> None:
        """Raise CoreError(INVALID) if the pipeline cannot run on the device of an instance."""
        check_device(self.config, self.read, device.kind)

    def unload(self) -> None:
        if self._releases:
            release_memory()


backend = Backend(
    model=DaliModel,
    instance=DaliInstance,
    complete=complete,
    instances={"CPU": 1, "GPU": 1},
    known_parameters=PARAMETERS,
    known_settings=KEYS,
)
