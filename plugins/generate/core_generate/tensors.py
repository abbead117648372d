"""The tensors of an engine's model, and how `complete` writes them into its configuration.

Their names are those of Triton's vLLM backend; docs/serve/generative.md lists them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from core.config import ModelConfig
from core.dtypes import BOOL, BYTES, FP32, INT32, UINT32, DataType
from core.errors import invalid

PARAMETER = "engine"
TASKS = ("generate", "embed", "rank", "transcribe")

Row = tuple[str, DataType, Sequence[int]]

# Flags of a request: the output that each adds to the responses.
RETURNS = {
    "return_finish_reason": "finish_reason",
    "return_cumulative_logprob": "cumulative_logprob",
    "return_logprobs": "logprobs",
    "return_num_input_tokens": "num_input_tokens",
    "return_num_output_tokens": "num_output_tokens",
    "return_token_ids": "token_ids",
    "return_stop_reason": "stop_reason",
}

# All inputs are optional: the request parameter "task" decides which of them are needed.
INPUTS: dict[str, list[Row]] = {
    "generate": [
        ("text_input", BYTES, [1]),
        ("prompt_token_ids", INT32, [-1]),
        ("image", BYTES, [-1]),
        ("stream", BOOL, [1]),
        ("sampling_parameters", BYTES, [1]),
        ("exclude_input_in_output", BOOL, [1]),
        *((name, BOOL, [1]) for name in RETURNS),
    ],
    "embed": [("text_input", BYTES, [-1]), ("prompt_token_ids", INT32, [-1])],
    "rank": [
        ("query", BYTES, [1]),
        ("documents", BYTES, [-1]),
        ("text_input", BYTES, [-1]),
        ("prompt_token_ids", INT32, [-1]),
    ],
    "transcribe": [
        ("audio", BYTES, [1]),
        ("language", BYTES, [1]),
        ("prompt", BYTES, [1]),
        ("temperature", FP32, [1]),
        ("times", BOOL, [1]),
    ],
}
_SOUND: Row = ("audio", BYTES, [-1])  # of the task "generate", where the engine reads sound
_TOKENS: list[Row] = [("token_ids", INT32, [-1]), ("text_output", BYTES, [1])]
OUTPUTS: dict[str, list[Row]] = {
    "generate": [
        ("text_output", BYTES, [1]),
        ("finish_reason", BYTES, [1]),
        ("cumulative_logprob", FP32, [1]),
        ("logprobs", BYTES, [1]),
        ("num_input_tokens", UINT32, [1]),
        ("num_output_tokens", UINT32, [1]),
        ("token_ids", INT32, [-1]),
        ("stop_reason", BYTES, [1]),
    ],
    "embed": [("embedding", FP32, [-1, -1]), ("num_input_tokens", UINT32, [-1]), *_TOKENS],
    "rank": [("scores", FP32, [-1]), ("num_input_tokens", UINT32, [1]), *_TOKENS],
    "transcribe": [
        ("text_output", BYTES, [1]),
        ("language", BYTES, [1]),
        ("duration", FP32, [1]),
        ("segment_text", BYTES, [-1]),
        ("segment_start", FP32, [-1]),
        ("segment_end", FP32, [-1]),
    ],
}


@dataclass(frozen=True)
class Description:
    """What a frontend must know of an engine's model; `EngineModel.describe` reads it without a load.

    task       "generate", "embed", "rank" or "transcribe"
    context    tokens of prompt and answer together; 0 if unknown
    template   chat template in Jinja; "" for none
    bos, eos   texts of the tokens that begin and end a text; "" for none
    supports   as Engine.supports
    adapters   names of the LoRA adapters
    marker     text that stands for an image in the prompt; "": the chat template itself writes one
    """

    task: str = "generate"
    context: int = 0
    template: str = ""
    bos: str = ""
    eos: str = ""
    supports: frozenset[str] = frozenset()
    adapters: tuple[str, ...] = ()
    marker: str = ""

    def as_json(self) -> str:
        """Return the fields as JSON text, the value of the parameter `engine` of a model's configuration."""
        return json.dumps(
            {
                "task": self.task,
                "context": self.context,
                "template": self.template,
                "bos": self.bos,
                "eos": self.eos,
                "supports": sorted(self.supports),
                "adapters": list(self.adapters),
                "marker": self.marker,
            },
            ensure_ascii=False,
        )


def write_configuration(config: ModelConfig, description: Description) -> None:
    """Write all inputs and outputs of the task, `decoupled` and the parameter `engine` into a configuration.

    `decoupled` becomes true for the task "generate", else false; but a configuration with a
    model_transaction_policy keeps it. A model that is not decoupled sends its text in one response only.
    Raises CoreError(INVALID) for an unknown task, for inputs or outputs in the configuration that differ from
    those of the task, and for a max_batch_size.
    """
    task = description.task
    if task not in TASKS:
        raise invalid(f"model '{config.name}': the task is '{task}', it must be one of {TASKS}")
    if config.max_batch_size:
        raise invalid(
            f"model '{config.name}' has max_batch_size {config.max_batch_size}; its engine batches "
            "itself: remove max_batch_size from config.pbtxt"
        )
    hears = task == "generate" and "audio" in description.supports
    tables: list[tuple[str, Any, list[Row]]] = [
        ("input", config.input, INPUTS[task] + [_SOUND] * hears),
        ("output", config.output, OUTPUTS[task]),
    ]
    for what, entries, rows in tables:
        known = {name: (dtype.number, list(dims)) for name, dtype, dims in rows}
        for entry in entries:
            if known.get(entry.name) != (entry.data_type, list(entry.dims)):
                raise invalid(
                    f"model '{config.name}' has the {what} '{entry.name}' of config.pbtxt not in this "
                    f"form; remove the {what}s there, or write: {_shown(rows)}"
                )
        del entries[:]
        for name, dtype, dims in rows:
            entry = entries.add(name=name, data_type=dtype.number, dims=dims)
            if what == "input":
                entry.optional = True
    if not config.HasField("model_transaction_policy"):
        config.model_transaction_policy.decoupled = task == "generate"
    config.parameters[PARAMETER].string_value = description.as_json()


def _shown(rows: Sequence[Row]) -> str:
    return ", ".join(f"{name} {dtype}{list(dims)}" for name, dtype, dims in rows)
