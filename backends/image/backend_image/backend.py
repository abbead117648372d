"""Backend, Model and ModelInstance: one stage for all instances of a version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from backend_image.complete import check, complete
from backend_image.recipe import FILE, read_recipe
from backend_image.stage import Stage
from core.backend import Backend, Model, ModelInstance
from core.batch import Batch
from core.completion import MAX_BATCH_SIZE


class ImageModel(Model):
    """One model version. `stage` does the work; it does not change after the load."""

    stage: Stage

    def load(self) -> None:
        """Read image.json. Raises CoreError(INVALID) with the file, the step, and what is expected."""
        self.stage = read_recipe(self.file(FILE))
        self.stage.model = self.name
        self.stage.batched = self.config.max_batch_size > 0
        self.stage.configured = frozenset(each.name for each in self.config.output)
        check(self.config, self.stage)


class ImageInstance(ModelInstance):
    """Runs the stage of its model. OpenCV releases the GIL, so several instances use several cores."""

    model: ImageModel
    placement = "auto"

    def open(self) -> None:
        self._stage = self.model.stage
        if not self._stage.is_short:
            self.placement = "thread"

    def execute(self, batch: Batch) -> Mapping[str, Any] | None:
        found = self._stage.execute(batch)
        return found if found is None else self._stage.chosen(found)


backend = Backend(
    model=ImageModel,
    instance=ImageInstance,
    complete=complete,
    instances={"CPU": 1},
    known_parameters=(),
    known_settings=(MAX_BATCH_SIZE,),
)
