"""Read the files of a version, without Paddle.

folder of a version ─► [reading] ─► ReadModel: paths, Program.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from backend_paddle.files import ModelFiles, model_files, unreadable
from backend_paddle.pir import read_pir
from backend_paddle.program_desc import read_program_desc
from backend_paddle.tensors import Program
from backend_paddle.weights import check_weights
from core.config import ModelConfig
from core.model_file import not_found


@dataclass(frozen=True)
class ReadModel:
    """A version's files, and what its program says."""

    files: ModelFiles
    program: Program


def read_model(config: ModelConfig, directory: Path) -> ReadModel:
    """Return a version's program, and compare its weights with it.

    Raises CoreError: UNAVAILABLE for a missing file, INTERNAL for a damaged one, or for weights of another
    program.
    """
    files = model_files(config, directory)
    program = _program(files, config.name)
    if files.weights.is_file():
        try:
            check_weights(files.weights, program.weights)
        except ValueError as error:
            raise unreadable(
                files.weights,
                config.name,
                f"{error}; copy it again, together with '{files.program.name}'",
            ) from None
    elif program.weights:
        raise not_found(files.weights, config.name)
    return ReadModel(files, program)


def _program(files: ModelFiles, model: str) -> Program:
    content = files.program.read_bytes()
    try:
        if not content:
            raise ValueError("it is empty")
        if files.is_json:
            return read_pir(content)
        if content.startswith(b'{"base_code"'):
            raise ValueError("it is of Paddle 3, which wants a name that ends with .json")
        return read_program_desc(content)
    except ValueError as error:
        raise unreadable(
            files.program,
            model,
            f"it is damaged, or no program of Paddle: {error}; copy or export it again",
        ) from None
