"""Tensors that a config.pbtxt for Triton's vLLM backend may list, in the form that they have there.

ModelConfig ─► [take_out_rows] ─► ModelConfig without them ─► the tensors of this backend
"""

from __future__ import annotations

from typing import Any

from core.config import ModelConfig
from core.dtypes import BOOL, BYTES, FP32, UINT32

_RETURNS = (
    "finish_reason",
    "cumulative_logprob",
    "logprobs",
    "num_input_tokens",
    "num_output_tokens",
)
_INPUTS = {
    "text_input": (BYTES, [1]),
    "image": (BYTES, [-1]),
    "stream": (BOOL, [1]),
    "sampling_parameters": (BYTES, [1]),
    "exclude_input_in_output": (BOOL, [1]),
    "embedding_request": (BYTES, [1]),
    **{f"return_{name}": (BOOL, [1]) for name in _RETURNS},
}
_OUTPUTS = {
    "text_output": (BYTES, [-1]),
    "finish_reason": (BYTES, [-1]),
    "cumulative_logprob": (FP32, [-1]),
    "logprobs": (BYTES, [-1]),
    "num_input_tokens": (UINT32, [1]),
    "num_output_tokens": (UINT32, [-1]),
}


def take_out_rows(config: ModelConfig) -> None:
    """Remove the inputs and outputs from a configuration that are as in Triton's backend.

    The tensors of this backend take their places: each has the same name, and fits where that one fits.
    """
    tables: list[tuple[Any, Any]] = [(config.input, _INPUTS), (config.output, _OUTPUTS)]
    for entries, known in tables:
        kept = [each for each in entries if not _is_known(each, known)]
        del entries[:]
        entries.extend(kept)


def _is_known(entry: Any, known: Any) -> bool:
    dtype, dims = known.get(entry.name, (None, None))
    return dtype is not None and (entry.data_type, list(entry.dims)) == (dtype.number, dims)
