"""The files of a version: a program, and its weights. Errors about them.

folder of a version ─► [files] ─► reading.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from core.config import ModelConfig
from core.errors import CoreError, internal
from core.model_file import check_readable, not_found

PROGRAM, JSON = ".pdmodel", ".json"
NAMES = ("model.pdmodel", "inference.json", "inference.pdmodel", "model.json", "__model__")
"""Files of a program, in the order in which they are looked for: Triton's name first."""


@dataclass(frozen=True)
class ModelFiles:
    """Paths of a version. The weights need not be there: a program may have none."""

    program: Path
    weights: Path

    @property
    def is_json(self) -> bool:
        """Return whether Paddle takes the program for one of Paddle 3: it decides by the name."""
        return self.program.suffix == JSON


def model_files(config: ModelConfig, directory: Path) -> ModelFiles:
    """Return the files of a version: `default_model_filename`, else the first of NAMES.

    Raises CoreError: UNAVAILABLE with the files that are there instead; INTERNAL if a file cannot be read.
    """
    names = [config.default_model_filename] if config.default_model_filename else NAMES
    there = [directory / each for each in names if (directory / each).is_file()]
    if not there:
        raise not_found(directory / names[0], config.name)
    program = there[0]
    found = ModelFiles(program, _weights(program))
    check_readable(program, config.name)
    if found.weights.exists():
        check_readable(found.weights, config.name)
    return found


def unreadable(path: Path, model: str, reason: str) -> CoreError:
    """Return the error for a file."""
    return internal(f"model '{model}': cannot load '{path}': {reason}")


def _weights(program: Path) -> Path:
    if program.name == "__model__":
        return program.with_name("__params__")
    stem = program.name.removesuffix(PROGRAM).removesuffix(JSON)
    return program.with_name(f"{stem}.pdiparams")
