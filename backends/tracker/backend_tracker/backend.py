"""Backend and Model: the parameters of a version."""

from __future__ import annotations

import logging

from backend_tracker.complete import complete
from backend_tracker.instance import TrackerInstance
from backend_tracker.settings import PARAMETERS, Settings, settings_of
from backend_tracker.tensors import check
from core.backend import Backend, Model
from core.completion import MAX_BATCH_SIZE

logger = logging.getLogger("core")


class TrackerModel(Model):
    """One model version. It has no weights: `settings` are its parameters."""

    settings: Settings

    def load(self) -> None:
        """Read and check the parameters. Raises CoreError(INVALID) with the parameter and its range."""
        check(self.config)
        self.settings = settings_of(self.config, self.path)
        if not self.config.HasField("sequence_batching"):
            logger.warning(
                "model '%s' has no sequence_batching: each frame is tracked on its own, and no track lasts "
                "longer; remove the other scheduler from config.pbtxt",
                self.name,
            )


backend = Backend(
    model=TrackerModel,
    instance=TrackerInstance,
    complete=complete,
    instances={"CPU": 1},
    known_parameters=PARAMETERS,
    known_settings=(MAX_BATCH_SIZE,),
)
