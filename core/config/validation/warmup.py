"""Rules of model_warmup that need no file. A load checks the samples against the model's inputs."""

from __future__ import annotations

from core import dtypes
from core.config.messages import ModelConfig, ModelWarmup
from core.config.validation.refusal import refused


def check_warmup(config: ModelConfig) -> None:
    """Raise CoreError(INVALID) if a sample is too large, or an input lacks datatype, fixed dims or source.

    A sample of batch size 0 is disabled and not checked.
    """
    for index, sample in enumerate(config.model_warmup):
        if not sample.batch_size:
            continue
        place = f"model_warmup[{index}]"
        most = max(1, config.max_batch_size)
        if sample.batch_size > most:
            raise refused(
                config,
                f"failed to run warmup sample '{sample.name}': batch size {sample.batch_size}, max "
                f"allowed is {most}",
                f"{place}.batch_size",
            )
        for name in sorted(sample.inputs):
            _check_input(config, name, sample.inputs[name], f"{place}.inputs['{name}']")


def _check_input(config: ModelConfig, name: str, given: ModelWarmup.Input, place: str) -> None:
    if given.data_type not in dtypes.BY_NUMBER:
        text = f"warmup setting expects input '{name}' to have data_type set"
        raise refused(config, text, place)
    for index, dim in enumerate(given.dims):
        found = f"{place}.dims[{index}] is {dim}"
        if dim == -1:
            text = "warmup setting expects all variable-size dimensions are specified for input"
            raise refused(config, f"{text} '{name}'", found)
        if dim < 0:
            text = f"warmup setting expects dimensions >= 0 for input '{name}'"
            raise refused(config, text, found)
    source = given.WhichOneof("input_data_type")
    if source is None:
        text = f"warmup setting expects input '{name}' to have input_data_type set"
        raise refused(config, text, f"{place} has no zero_data, random_data or input_data_file")
    if source == "input_data_file" and not given.input_data_file:
        text = f"warmup setting expects a file name for input '{name}'"
        raise refused(config, text, f"{place}.input_data_file is empty")
