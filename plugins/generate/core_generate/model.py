"""EngineModel: a model version that an engine serves. engine_backend: the backend of such models.

config.pbtxt + describe ─► complete ─► [EngineModel].load ─► make_engine ─► EngineInstance
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

import core
from core.config import ModelConfig
from core.errors import invalid
from core_generate.engine import Engine
from core_generate.instance import EngineInstance
from core_generate.metrics import Measurements
from core_generate.tensors import PARAMETER, Description, write_configuration


class EngineModel(core.Model):
    """Base class of the models of a backend with an engine.

    engine        what `make_engine` has returned; set by `load`, closed by `unload`
    description   what `describe` has returned; set by `load`
    measured      what the metrics of the model show; set by `load`
    """

    engine: Engine
    description: Description
    measured: Measurements

    @classmethod
    def describe(cls, config: ModelConfig, path: Path, backend: core.Backend) -> Description:
        """Return what the files of a version say, without loading it. Called on a worker thread.

        config   configuration from config.pbtxt, which this method must not change
        path     folder of the version
        """
        raise NotImplementedError(f"{cls.__name__} has no describe")

    def make_engine(self) -> Engine:
        """Load the model, and return its engine. Called on a worker thread; may take long."""
        raise NotImplementedError(f"{type(self).__name__} has no make_engine")

    def load(self) -> None:
        check_instances(self.config)
        self.description = self.describe(self.config, self.path, self.backend)
        self.engine = self.make_engine()
        self.measured = Measurements(self)
        if self.description.template:
            _compile(self.description.template)

    def unload(self) -> None:
        if hasattr(self, "measured"):
            self.measured.close()
        if hasattr(self, "engine"):
            self.engine.close()


def _compile(template: str) -> None:
    """Compile a chat template here, and not on the event loop at the first chat, which reports its error."""
    from core_generate.chat.templates import TemplateError, read_template

    with contextlib.suppress(TemplateError):
        read_template(template)


def check_instances(config: ModelConfig) -> None:
    """Raise CoreError(INVALID) for more than one instance."""
    instances = sum(group.count * max(1, len(group.gpus)) for group in config.instance_group)
    if instances > 1:
        raise invalid(
            f"model '{config.name}' has {instances} instances; its engine runs many generations at "
            "once in one: remove instance_group from config.pbtxt"
        )


def engine_backend(
    model: type[EngineModel],
    *,
    known_parameters: Iterable[str] = (),
    known_settings: Iterable[str] = (),
) -> core.Backend:
    """Return the backend whose models are instances of `model`. Call this while its package is imported.

    known_parameters, known_settings   as those of core.Backend
    """

    def complete(config: ModelConfig, path: Path, backend: core.Backend) -> None:
        write_configuration(config, model.describe(config, path, backend))

    return core.Backend(
        model=model,
        instance=EngineInstance,
        complete=complete,
        instances={"MODEL": 1},
        known_parameters=[*known_parameters, PARAMETER],
        known_settings=known_settings,
    )
