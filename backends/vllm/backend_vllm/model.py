"""Model and backend: versions with a model.json, run by vLLM."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from core_generate import Description, EngineInstance, EngineModel
from core_generate.tensors import PARAMETER, write_configuration

import core
from backend_vllm.arguments import FILE
from backend_vllm.settings import PARAMETERS, Settings, description_of, settings_of
from backend_vllm.triton import take_out_rows
from core.config import ModelConfig
from core.errors import invalid

if TYPE_CHECKING:
    from backend_vllm.counts import Counts
    from backend_vllm.engine import VllmEngine

# Tasks of vLLM by those of core_generate.
_TASKS = {"generate": "generate", "embed": "embed", "rank": "classify"}


class VllmModel(EngineModel):
    """A model version with a model.json.

    counts   what vLLM reports of its steps
    """

    engine: VllmEngine
    counts: Counts
    _memory: Sequence[core.MemoryUsage] = ()
    _reports = False

    @classmethod
    def describe(cls, config: ModelConfig, path: Path, backend: core.Backend) -> Description:
        return description_of(settings_of(config, path))

    def make_engine(self) -> VllmEngine:
        from backend_vllm.runner import EngineRunner

        settings = settings_of(self.config, self.path)
        runner = EngineRunner(settings.arguments, self.name, self.file(FILE))
        try:
            self._check_task(settings, runner.call(runner.llm.get_supported_tasks()).result())
            # They import torch.
            from backend_vllm.engine import VllmEngine
            from backend_vllm.memory import memory_of

            self._reports = settings.reports
            self._memory = memory_of(runner.config, settings.folder.byte_size)
            self.counts = runner.counts
            return VllmEngine(runner, settings)
        except BaseException:
            runner.close()
            raise

    def load(self) -> None:
        super().load()
        if self._reports:
            from backend_vllm.metrics import show

            show(self)

    def unload(self) -> None:
        from backend_vllm.metrics import hide

        hide(self)
        super().unload()

    def memory_usage(self) -> Iterable[core.MemoryUsage]:
        """Return the bytes of the weights and of the cache of keys and values, on each device."""
        return self._memory

    def _check_task(self, settings: Settings, found: Sequence[str]) -> None:
        if _TASKS[settings.task] not in found:
            raise invalid(
                f"model '{self.name}' has the task '{settings.task}', and vLLM runs it for "
                f"{', '.join(found)}; set 'runner' and 'convert' in model.json"
            )


class VllmInstance(EngineInstance):
    """The instance of a model of vLLM. It is ready while vLLM's processes run."""

    model: VllmModel

    def open(self) -> None:
        super().open()
        self.model.engine.on_death = self._died

    def ready(self) -> bool:
        return self.model.engine.runner.is_alive

    def _died(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: the server has ended
            self.loop.call_soon_threadsafe(self.changed)


def complete(config: ModelConfig, path: Path, backend: core.Backend) -> None:
    """Write the tensors of the model's task into its configuration."""
    complete_by(settings_of(config, path), config)


def complete_by(settings: Settings, config: ModelConfig) -> None:
    """Write the tensors of the task into a configuration, whose settings are known."""
    take_out_rows(config)
    write_configuration(config, description_of(settings))


backend = core.Backend(
    model=VllmModel,
    instance=VllmInstance,
    complete=complete,
    instances={"MODEL": 1},
    known_parameters=[*PARAMETERS, PARAMETER],
    known_settings=(),
)
