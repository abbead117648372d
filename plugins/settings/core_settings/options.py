"""The options of a server that keeps live settings in files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from core.errors import invalid
from core.options import Options, Section, group
from core.options.values import BOOL, STRING

_settings = group("Live settings of models")


@dataclass(kw_only=True)
class SettingsOptions(Section):
    # fmt: off
    settings_write: bool = _settings(BOOL, False,
        "Write the live settings of a model to a file after each change (docs/operate/settings.md).")
    settings_read: bool = _settings(BOOL, False,
        "Read the file with the live settings of a model when the model loads.")
    settings_folder: str = _settings(STRING, "",
        "Folder of these files, <model>.json; default: configs/settings.json in the folder of each model.")
    # fmt: on

    def check(self, options: Options) -> None:
        """Raise CoreError(INVALID) for a folder that is none, or that nothing uses."""
        if not self.settings_folder:
            return
        if not Path(self.settings_folder).is_dir():
            raise invalid(f"--settings-folder={self.settings_folder} is no folder")
        if not (self.settings_write or self.settings_read):
            raise invalid("--settings-folder needs --settings-write, --settings-read or both")
