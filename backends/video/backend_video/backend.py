"""Backend and Model: the parameters of a version."""

from __future__ import annotations

from dataclasses import replace

from backend_video.complete import complete
from backend_video.hardware import opened
from backend_video.instance import VideoInstance
from backend_video.settings import PARAMETERS, Settings, settings_of
from backend_video.tensors import check
from core.backend import Backend, Model

_STREAMS = 16  # decoded at a time, unless instance_group says another number


class VideoModel(Model):
    """One model version. It has no weights: `settings` are its parameters."""

    settings: Settings

    def load(self) -> None:
        """Read and check the parameters. Raises CoreError(INVALID) with the parameter and what it may be."""
        settings = settings_of(self.config, self.directory)
        check(self.config, settings.format)
        self.settings = replace(settings, device=opened(self.name, settings.hardware))


backend = Backend(
    model=VideoModel,
    instance=VideoInstance,
    complete=complete,
    instances={"CPU": _STREAMS},
    known_parameters=PARAMETERS,
    known_settings=(),
)
