"""Find the model file and its kind. Errors say what a person can do about other files.

Model.load ─► [files] ─► torchscript, exported, aoti.  Only the names in the archive are read; nothing is
unpickled.
"""

from __future__ import annotations

import enum
import zipfile
from pathlib import Path

from backend_pytorch.framework import import_torch
from core.config import ModelConfig
from core.errors import CoreError, internal
from core.model_file import check_readable, not_found


class Format(enum.Enum):
    """The kinds of files of PyTorch."""

    TORCHSCRIPT = "a TorchScript program"
    AOTI = "an AOTInductor package"
    EXPORTED = "an exported program"
    CHECKPOINT = "a checkpoint of torch.save"


def model_file(config: ModelConfig, directory: Path) -> Path:
    """Return the file of a version: `default_model_filename`, which core completes from the platform.

    If that is model.pt or model.pt2 and only the other one exists, return the other one.
    Raises CoreError(UNAVAILABLE) with the files that are there instead.
    """
    path = directory / (config.default_model_filename or "model.pt")
    if path.is_file():
        return path
    others = [directory / name for name in ("model.pt", "model.pt2")]
    there = [each for each in others if each.is_file()]
    if path in others and there:
        return there[0]
    raise not_found(path, config.name)


def format_of(path: Path, model: str) -> Format:
    """Return the kind of a file. Raises CoreError(INTERNAL), with advice, for a file that is not of torch."""
    check_readable(path, model)
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except Exception as error:  # zipfile raises many types of errors for damaged files
        raise _no_archive(path, model, error) from error
    inner = {name.partition("/")[2] for name in names}
    if any(name.startswith("data/aotinductor/") for name in inner):
        return Format.AOTI
    if "archive_format" in inner or any("exported_program" in name for name in (*names, *inner)):
        return Format.EXPORTED
    if "constants.pkl" in inner:
        return Format.TORCHSCRIPT
    if "data.pkl" in inner:
        return Format.CHECKPOINT
    raise internal(
        f"model '{model}': '{path}' is a zip archive, but nothing that torch saves; export the model "
        "with torch.jit.save, torch.export.save or torch._inductor.aoti_compile_and_package"
    )


def is_checkpoint(path: Path, model: str) -> CoreError:
    """Return the error for a file of weights in the place of a program."""
    return internal(
        f"model '{model}': '{path}' is a checkpoint of torch.save: weights, without the code of the "
        "model. Make a program of it: torch.jit.script(model).save('model.pt') or "
        "torch.export.save(torch.export.export(model, example_inputs), 'model.pt2'); or put a model.py "
        'with its nn.Module beside it, and runtime: "model.py" into config.pbtxt'
    )


def cannot_load(path: Path, model: str, reason: str, advice: str) -> CoreError:
    version = import_torch().__version__
    return internal(f"model '{model}': torch {version} cannot load '{path}': {reason}; {advice}")


def _no_archive(path: Path, model: str, error: Exception) -> CoreError:
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(4)
    if not size:
        advice = "it is empty; copy or export it again"
    elif head == b"PK\x03\x04":
        advice = f"its {size} bytes are only the beginning of an archive; copy or export it again"
    elif head[:1] == b"\x80":
        advice = (
            "it is a pickle, such as torch.save of old wrote; it is not opened, since pickles run code. "
            "Export the model with torch.jit.save or torch.export.save"
        )
    else:
        advice = (
            f"its {size} bytes are no archive as torch writes them; export the model with "
            "torch.jit.save, torch.export.save or torch._inductor.aoti_compile_and_package"
        )
    return internal(f"model '{model}': cannot load '{path}': {advice} ({error})")
