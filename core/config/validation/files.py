"""Rules about files that a configuration names: none lies outside of the model's directory.

A configuration may come from a client of the load API, who must not reach what else is on the disk.
Links are followed, and refused if they leave, by who opens a file.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from core.config.messages import ModelConfig
from core.errors import invalid


def check_files(config: ModelConfig) -> None:
    for field, path in _files(config):
        if posixpath.isabs(path) or posixpath.normpath(f"folder/{path}").startswith(".."):
            raise invalid(f"{field} '{path}' in model '{config.name}' is outside model directory")
    if "/" in config.runtime or config.runtime in (".", ".."):
        raise invalid(
            f"backend library name '{config.runtime}' escapes backend directory, for model "
            f"'{config.name}', check model config runtime field"
        )


def _files(config: ModelConfig) -> Iterator[tuple[str, str]]:
    """Every path with the field that it is in; each starts in a folder of the model's directory."""
    yield "default_model_filename", config.default_model_filename
    for path in config.cc_model_filenames.values():
        yield "cc_model_filenames", path
    for sample in config.model_warmup:
        for warmup_input in sample.inputs.values():
            yield "warmup input_data_file", warmup_input.input_data_file
    for state in config.sequence_batching.state:
        for initial in state.initial_state:
            yield "initial_state data_file", initial.data_file
