"""The task "classify": its tensors, and the instance that answers its requests.

text_input BYTES[-1] ─► [ClassInstance] ─► label BYTES[-1], score FP32[-1], scores FP32[-1, classes]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from core_generate import EngineInstance
from core_generate.instance import Outputs
from core_generate.reading import texts

from core.config import ModelConfig
from core.dtypes import BYTES, FP32
from core.errors import invalid
from core.request import InferenceRequest

if TYPE_CHECKING:
    from backend_transformers.scoring import ScoringEngine


class ClassInstance(EngineInstance):
    """An instance of an engine's model that also has the task "classify"."""

    def open(self) -> None:
        super().open()
        self._tasks["classify"] = self._classify

    def _asked_task(self, task: Any) -> str:
        if self.model.description.task == "classify" and task != "classify":
            raise invalid(
                f"the request parameter 'task' is '{task}', model '{self.model.name}' has classify only"
            )
        return super()._asked_task(task)

    def _classify(self, request: InferenceRequest) -> Outputs:
        """Return the most likely class of each text, and the probabilities of all classes."""
        engine: ScoringEngine = self.model.engine  # type: ignore[assignment]
        scores = engine.classify(texts(request.inputs, "text_input"))
        best = scores.argmax(1)
        return {
            "label": np.array([engine.labels[each].encode() for each in best], object),
            "score": scores[np.arange(len(best)), best],
            "scores": scores,
        }


def write_classes(config: ModelConfig, labels: int) -> None:
    """Write the inputs and outputs of the task "classify" into a configuration.

    Raises CoreError(INVALID) for other inputs and outputs in the configuration, and for a max_batch_size.
    """
    wanted = ModelConfig()
    wanted.input.add(name="text_input", data_type=BYTES.number, dims=[-1])
    wanted.output.add(name="label", data_type=BYTES.number, dims=[-1])
    wanted.output.add(name="score", data_type=FP32.number, dims=[-1])
    wanted.output.add(name="scores", data_type=FP32.number, dims=[-1, labels])
    pairs: list[tuple[Any, Any]] = [(config.input, wanted.input), (config.output, wanted.output)]
    for given, right in pairs:
        if (given and list(given) != list(right)) or config.max_batch_size:
            raise invalid(
                f"model '{config.name}' has the task 'classify', whose inputs and outputs are fixed: remove "
                "input, output and max_batch_size from config.pbtxt"
            )
        del given[:]
        given.extend(right)
