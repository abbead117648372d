"""Backend and Model: the files of a version, and the predictors of its instances."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backend_paddle.check import check
from backend_paddle.complete import complete
from backend_paddle.installed import import_paddle
from backend_paddle.instance import PaddleInstance
from backend_paddle.reading import read_model
from backend_paddle.settings import KEYS, PARAMETERS, Settings, settings_of
from backend_paddle.tensors import Ports
from core.backend import Backend, Model

if TYPE_CHECKING:
    from backend_paddle.predictor import PredictorSource


class PaddleModel(Model):
    """One model version.

    ports        inputs and outputs
    predictors   of its instances
    """

    settings: Settings
    ports: Ports
    predictors: PredictorSource

    def load(self) -> None:
        """Read the files and compare them with the configuration. The first instance has Paddle load them.

        Raises CoreError if the files cannot be read, or do not fit each other or the configuration.
        """
        self.settings = settings_of(self.config)
        found = read_model(self.config, self.path)
        self.ports = found.program.ports
        check(self.config, self.ports)
        import_paddle(self.name)
        from backend_paddle.predictor import PredictorSource

        self.predictors = PredictorSource(found.files, self.settings, self.name)

    def unload(self) -> None:
        self.predictors.close()


backend = Backend(
    model=PaddleModel,
    instance=PaddleInstance,
    complete=complete,
    instances={"CPU": 1, "GPU": 1},
    known_parameters=PARAMETERS,
    known_settings=KEYS,
)
