"""Rules for the files that a configuration names: they are inside the model's directory.

A client of the load API may send a configuration; it must not reach other files of the machine. Readers of
labels, initial states and warm-up samples refuse links that leave the directory; those of models follow them.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from core.config.messages import ModelConfig
from core.errors import invalid


def check_files(config: ModelConfig) -> None:
    """Raise CoreError(INVALID) for a path that leaves the model's directory, and a runtime that is a path."""
    for field, path in _files(config):
        where = f"{field} '{path}' in model '{config.name}'"
        if "\0" in path:
            raise invalid(f"{where} has a zero byte, which no file name has")
        if posixpath.isabs(path) or posixpath.normpath(f"folder/{path}").startswith(".."):
            raise invalid(f"{where} is outside model directory")
    if "/" in config.runtime or config.runtime in (".", ".."):
        raise invalid(
            f"backend library name '{config.runtime}' escapes backend directory, for model "
            f"'{config.name}', check model config runtime field"
        )


def _files(config: ModelConfig) -> Iterator[tuple[str, str]]:
    """Yield (field, path in a folder of the model) of each file that a configuration names; "" if not set.

    Of label files, only paths with a zero byte come: `signature_of` checks the others.
    """
    yield "default_model_filename", config.default_model_filename
    for capability, path in sorted(config.cc_model_filenames.items()):
        yield f"cc_model_filenames['{capability}']", path
    for index, sample in enumerate(config.model_warmup):
        for name, given in sorted(sample.inputs.items()):
            yield f"model_warmup[{index}].inputs['{name}'].input_data_file", given.input_data_file
    for index, state in enumerate(config.sequence_batching.state):
        for initial in state.initial_state:
            yield f"sequence_batching.state[{index}].initial_state data_file", initial.data_file
    for index, output in enumerate(config.output):
        if "\0" in output.label_filename:
            yield f"output[{index}].label_filename", output.label_filename
