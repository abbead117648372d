"""Rules of model_warmup that need no file."""

from __future__ import annotations

from core.config.messages import ModelConfig
from core.errors import invalid


def check_warmup(config: ModelConfig) -> None:
    """Every input of a sample says how large it is and where its data come from.

    A sample of batch size 0 is switched off, and nobody looks at it.
    """
    for sample in config.model_warmup:
        if not sample.batch_size:
            continue
        for name in sorted(sample.inputs):
            if -1 in sample.inputs[name].dims:
                raise invalid(
                    "warmup setting expects all variable-size dimensions are specified for input "
                    f"'{name}'"
                )
            if sample.inputs[name].WhichOneof("input_data_type") is None:
                raise invalid(f"warmup setting expects input '{name}' to have input_data_type set")
