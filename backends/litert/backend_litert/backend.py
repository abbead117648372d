"""Backend and Model: a file in memory, and how instances share it."""

from __future__ import annotations

from pathlib import Path

from backend_litert.check import check
from backend_litert.complete import complete
from backend_litert.instance import LiteRtInstance
from backend_litert.reading import contents, model_file, read_bytes
from backend_litert.settings import PARAMETERS, Settings, settings_of
from backend_litert.tensors import Ports
from core.backend import Backend, Model


class LiteRtModel(Model):
    """One model version: the content of its file.

    The file is read, not mapped: a file that changes on the disk does not change a model that is loaded.

    content     of the file
    file_path   for errors
    ports       inputs and outputs of the signature
    """

    settings: Settings
    content: bytes
    file_path: Path
    ports: Ports

    def load(self) -> None:
        """Read the file and compare it with the configuration. Each instance opens an interpreter.

        Raises CoreError if the file cannot be read, or does not fit the configuration.
        """
        self.settings = settings_of(self.config)
        self.file_path = model_file(self.config, self.path)
        self.content = read_bytes(self.file_path, self.name)
        found = contents(self.content, self.file_path, self.name)
        check(self.config, found, self.settings)
        self.ports = found.ports(self.settings.signature, self.name)

    def unload(self) -> None:
        self.content = b""


backend = Backend(
    model=LiteRtModel,
    instance=LiteRtInstance,
    complete=complete,
    instances={"CPU": 1},
    known_parameters=PARAMETERS,
    known_settings=(),
)
