"""The task "classify": its tensors, and the instance that answers its requests.

text_input or image BYTES[-1] ─► [ClassInstance] ─► label, score, scores, top_labels, top_scores
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from core_generate import EngineInstance
from core_generate.instance import Outputs
from core_generate.reading import element, missing

from core.config import ModelConfig
from core.dtypes import BYTES, FP32, INT32
from core.errors import invalid
from core.request import InferenceRequest
from core.tensor import Tensor

if TYPE_CHECKING:
    from backend_transformers.images import ImageEngine
    from backend_transformers.scoring import ScoringEngine

_TOP = 5  # classes of each text or image in top_labels, where the request has no input top_k


class ClassInstance(EngineInstance):
    """An instance of an engine's model that also has the task "classify"."""

    def open(self) -> None:
        super().open()
        images = self.model.config.input[0].name == "image"
        self._tasks["classify"] = self._classify_images if images else self._classify_texts

    def _asked_task(self, task: Any) -> str:
        if self.model.description.task == "classify" and task != "classify":
            raise invalid(
                f"the request parameter 'task' is '{task}', model '{self.model.name}' has classify only"
            )
        return super()._asked_task(task)

    def _classify_texts(self, request: InferenceRequest) -> Outputs:
        engine: ScoringEngine = self.model.engine  # type: ignore[assignment]
        count = _top_k(request.inputs)
        found = engine.classify(self._texts(request, "text_input"))
        return _outputs(engine.labels, found, count)

    def _classify_images(self, request: InferenceRequest) -> Outputs:
        engine: ImageEngine = self.model.engine  # type: ignore[assignment]
        count = _top_k(request.inputs)
        if (files := request.inputs.get("image")) is None:
            raise missing("image")
        scores = engine.classify(files.array.ravel().tolist(), lambda: request.cancelled)
        return _outputs(engine.labels, scores, count)


def _top_k(inputs: Mapping[str, Tensor]) -> int:
    found = int(element(inputs["top_k"])) if "top_k" in inputs else _TOP
    if found < 1:
        raise invalid(f"the input 'top_k' is {found}, expected 1 or more")
    return found


def _outputs(labels: Sequence[str], scores: Any, count: int) -> Outputs:
    """Return the outputs for FP32[rows, classes]. Of equal scores, that of the smaller number is first."""
    best = np.argsort(-scores, axis=1, kind="stable")[:, :count]
    names = np.array([each.encode() for each in labels], object)[best]
    values = np.take_along_axis(scores, best, axis=1)
    return {
        "label": names[:, 0],
        "score": values[:, 0],
        "scores": scores,
        "top_labels": names,
        "top_scores": values,
    }


def write_classes(config: ModelConfig, read: str, labels: int) -> None:
    """Write the inputs and outputs of the task "classify" into a configuration.

    read     name of the input with the texts or images
    labels   number of classes
    Raises CoreError(INVALID) for other inputs and outputs in the configuration, and for a max_batch_size.
    """
    wanted = ModelConfig()
    wanted.input.add(name=read, data_type=BYTES.number, dims=[-1])
    wanted.input.add(name="top_k", data_type=INT32.number, dims=[1], optional=True)
    wanted.output.add(name="label", data_type=BYTES.number, dims=[-1])
    wanted.output.add(name="score", data_type=FP32.number, dims=[-1])
    wanted.output.add(name="scores", data_type=FP32.number, dims=[-1, labels])
    wanted.output.add(name="top_labels", data_type=BYTES.number, dims=[-1, -1])
    wanted.output.add(name="top_scores", data_type=FP32.number, dims=[-1, -1])
    pairs: list[tuple[Any, Any]] = [(config.input, wanted.input), (config.output, wanted.output)]
    for given, right in pairs:
        if any(each not in right for each in given) or config.max_batch_size:
            raise invalid(
                f"model '{config.name}' has the task 'classify', whose inputs and outputs are fixed: remove "
                "input, output and max_batch_size from config.pbtxt"
            )
        del given[:]
        given.extend(right)
