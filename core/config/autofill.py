"""Derive name, backend, platform and default file name of a model from the names of its files.

Only the names of the files in one version directory count here. The backend reads their content in the next
step (`complete`).
"""

from __future__ import annotations

from collections.abc import Collection

from core.config.formats import Formats
from core.config.messages import ModelConfig
from core.errors import invalid

ENSEMBLE = "ensemble"


def fill(
    config: ModelConfig, model_name: str, formats: Formats, version_entries: Collection[str] = ()
) -> None:
    """Fill in name, backend, platform and default_model_filename if empty; of an ensemble only the name.

    model_name        name of the model's directory
    formats           of the installed backends
    version_entries   names in the first version directory (first in string order, as in Triton),
                      folders with a "/" at the end; empty if there is no version
    Raises CoreError(INVALID) if `config` names no backend, platform or file, and the files are of several
    backends, or neither they nor a name `x.<backend>` tell it. Backend "ensemble" becomes the platform.
    """
    if not config.name:
        config.name = model_name
    if config.backend == ENSEMBLE and config.platform in ("", ENSEMBLE):
        # Triton refuses this. Published examples contain it, and its meaning is unambiguous.
        config.backend, config.platform = "", ENSEMBLE
    if config.platform == ENSEMBLE or config.HasField("ensemble_scheduling"):
        return
    platform, file = config.platform, config.default_model_filename
    if config.backend:
        found = formats.of_backend(config.backend, platform, file, version_entries)
    elif platform or file:
        found = formats.named_by(platform, file)
    else:
        # A dot in the name takes precedence over formats that Triton does not know.
        found = formats.found_in(version_entries, only_ordered="." in model_name)
        if found is None:
            _fill_from_name(config, model_name, formats, version_entries)
    if found is not None:
        config.backend = config.backend or found.backend
        config.platform = platform or found.platform
        config.default_model_filename = file or found.file


def _fill_from_name(
    config: ModelConfig, model_name: str, formats: Formats, version_entries: Collection[str]
) -> None:
    """Set backend and file from the model's name, `x.<backend>`. Raises CoreError(INVALID) without a dot."""
    _, dot, backend = model_name.partition(".")
    if not dot:
        there = ", ".join(sorted(version_entries)) or "no file"
        known = ", ".join(each.file for each in formats) or "none"
        raise invalid(
            f"Invalid model name: Could not determine backend for model '{model_name}' with no "
            "backend in model configuration. Expected model name of the form "
            f"'model.<backend_name>'. No installed backend knows the files of its version: found {there}; "
            f"known are {known}{formats.advice(version_entries)}"
        )
    config.backend = backend
    config.default_model_filename = f"model.{backend}"
