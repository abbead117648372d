"""Pipeline: a ContinuousBatchingPipeline of OpenVINO GenAI, with its tokenizer.

Settings ─► [Pipeline] ─► add, step, read ─► tokens
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import openvino
import openvino_genai
from core_generate import StructureRefused

from backend_openvino_genai.loading import check_device, reason, thread_properties
from backend_openvino_genai.native.members import Members
from backend_openvino_genai.settings import Settings
from backend_openvino_genai.tokenizer import ModelTokenizer
from core.errors import internal


class Pipeline:
    """A loaded model.

    tokenizer   its tokenizer
    `add` and `step` belong to one thread; the other methods are thread-safe.
    Raises CoreError if OpenVINO GenAI cannot load the files, or does not know the device.
    """

    def __init__(self, path: Path, settings: Settings):
        check_device(settings.device)
        library = next(Path(openvino_genai.__file__).parent.glob("libopenvino_genai.so*"))
        try:
            self._members = Members(str(library))
            self._pipeline = openvino_genai.ContinuousBatchingPipeline(
                str(path), _scheduler(settings), settings.device, _properties(settings)
            )
            # The first call shows whether this version of openvino-genai has the compiled module's interface.
            self._members.step(self._pipeline)
        except Exception as error:
            raise internal(f"OpenVINO GenAI cannot load '{path}': {reason(error)}") from None
        self.tokenizer = ModelTokenizer(self._pipeline.get_tokenizer())
        self._added = 0

    def add(self, tokens: Sequence[int], config: Any) -> Any:
        """Add a generation. Return its GenerationHandle, whose tokens come with the next steps."""
        self._added += 1
        return self._pipeline.add_request(
            self._added, openvino.Tensor(np.array([tokens], np.int64)), config
        )

    def step(self) -> None:
        """Compute the next tokens of all generations, without the GIL. Raises RuntimeError."""
        self._members.step(self._pipeline)

    def is_busy(self) -> bool:
        """Return whether a step has something to do: generations, or the memory of cancelled ones."""
        return bool(self._pipeline.has_non_finished_requests())

    def metrics(self) -> Any:
        """Return the PipelineMetrics of the last step."""
        return self._pipeline.get_metrics()

    def config(self) -> Any:
        """Return a new GenerationConfig with the values of the model's generation_config.json."""
        return self._pipeline.get_config()

    def check_structure(self, structure: Any, what: str) -> None:
        """Raise StructureRefused if xgrammar refuses a StructuredOutputConfig.

        A step that meets such a structure would end the generations of all requests.
        what   what the structure comes from, for the error
        """
        try:
            self._members.check_structure(structure, self.tokenizer.raw)
        except RuntimeError as error:
            raise StructureRefused(f"{what} cannot be compiled: {reason(error)}") from None


def _scheduler(settings: Settings) -> Any:
    found = openvino_genai.SchedulerConfig()
    found.max_num_seqs = settings.sequences
    found.max_num_batched_tokens = settings.batched_tokens
    found.cache_size = settings.cache_gb
    found.num_kv_blocks = settings.cache_blocks
    found.enable_prefix_caching = settings.prefix_caching
    found.dynamic_split_fuse = settings.split_fuse
    return found


def _properties(settings: Settings) -> dict[str, Any]:
    found = thread_properties(settings)
    if settings.threads:
        found["sampler_num_threads"] = settings.threads
    if settings.cache_precision:
        found["KV_CACHE_PRECISION"] = settings.cache_precision
    return found
