"""Pipeline: a ContinuousBatchingPipeline of OpenVINO GenAI, with its tokenizer.

Settings ─► [Pipeline] ─► add, step, read ─► tokens
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import openvino
import openvino_genai

from backend_openvino_genai.native.members import Members
from backend_openvino_genai.settings import Settings
from core.errors import internal, invalid

_PLACES = re.compile(r"^(Exception from \S+\n?|Check '.*' failed at \S+\n?|\[[\d:]+\] \S+: )", re.M)


class Pipeline:
    """A loaded model.

    `add` and `step` belong to one thread; the other methods are thread-safe.
    Raises CoreError if OpenVINO GenAI cannot load the files, or does not know the device.
    """

    def __init__(self, path: Path, settings: Settings):
        _check_device(settings.device)
        library = next(Path(openvino_genai.__file__).parent.glob("libopenvino_genai.so*"))
        try:
            self._members = Members(str(library))
            self._pipeline = openvino_genai.ContinuousBatchingPipeline(
                str(path), _scheduler(settings), settings.device, _properties(settings)
            )
        except Exception as error:
            raise internal(f"OpenVINO GenAI cannot load '{path}': {reason(error)}") from None
        self._tokenizer = self._pipeline.get_tokenizer()
        self.vocabulary = len(self._tokenizer.get_vocab())
        self._bos = str(self._tokenizer.get_bos_token())
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
        """Raise CoreError(INVALID) if xgrammar refuses a StructuredOutputConfig.

        A step that meets such a structure would end the generations of all requests.
        what   what the structure comes from, for the error
        """
        try:
            self._members.check_structure(structure, self._tokenizer)
        except RuntimeError as error:
            raise invalid(f"{what} cannot be compiled: {reason(error)}") from None

    def tokenize(self, text: str, special: bool) -> list[int]:
        """Return the tokens of a text. With `special`, it begins with the token for that, but only once."""
        # A chat template may have written that token already.
        special = special and not (self._bos and text.startswith(self._bos))
        found = self._tokenizer.encode(text, add_special_tokens=special).input_ids
        return [int(each) for each in found.data[0]]

    def text(self, tokens: Sequence[int], special: bool = False) -> str:
        """Return the text of tokens; without `special`, without the texts of special tokens."""
        return str(self._tokenizer.decode(list(tokens), skip_special_tokens=not special))


def reason(error: Exception) -> str:
    """Return the text of an exception of OpenVINO without the places in its source."""
    lines = _PLACES.sub("", str(error)).split("\n")
    return " ".join(each.strip() for each in lines if each.strip()) or repr(error)


def _check_device(device: str) -> None:
    """Raise CoreError(INVALID) for a device that is not there. Its number, as in "GPU.0", is not checked."""
    known = openvino.Core().available_devices
    if device.partition(".")[0] not in {each.partition(".")[0] for each in known}:
        raise invalid(f"parameter 'device' is '{device}', this machine has {', '.join(known)}")


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
    found: dict[str, Any] = {}
    if settings.threads:
        found |= {
            "INFERENCE_NUM_THREADS": settings.threads,
            "sampler_num_threads": settings.threads,
        }
    if settings.cache_precision:
        found["KV_CACHE_PRECISION"] = settings.cache_precision
    return found
