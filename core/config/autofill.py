"""Fill in what a configuration leaves to the files: name, backend, platform, default file name.

config.pbtxt ─► parse ─► [fill] ─► complete ─► normalise ─► validate.  Only file names are looked
at, those of one version directory; what is inside them is the backend's to know (`complete`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from core.config.messages import ModelConfig
from core.errors import invalid

ENSEMBLE = "ensemble"


@dataclass(frozen=True)
class Format:
    """A model format that is known by its file name.

    file            default_model_filename
    platform        the legacy word that goes with the backend, "" if there is none
    words           further platform words that mean the same
    may_be_folder   the model may be a folder of that name
    may_be_file     the model may be a file of that name
    """

    backend: str
    file: str
    platform: str = ""
    words: tuple[str, ...] = ()
    may_be_folder: bool = False
    may_be_file: bool = True

    def is_in(self, entries: Collection[str]) -> bool:
        return (self.may_be_file and self.file in entries) or (
            self.may_be_folder and f"{self.file}/" in entries
        )

    def is_named_by(self, platform: str, file: str) -> bool:
        return file == self.file or (platform != "" and platform in (self.platform, *self.words))


PYTHON = Format("python", "model.py")

# In the order in which a version directory is searched.
FORMATS = (
    Format(
        "tensorflow",
        "model.savedmodel",
        "tensorflow_savedmodel",
        may_be_folder=True,
        may_be_file=False,
    ),
    Format("tensorflow", "model.graphdef", "tensorflow_graphdef"),
    Format("tensorrt", "model.plan", "tensorrt_plan"),
    Format("onnxruntime", "model.onnx", "onnxruntime_onnx", may_be_folder=True),
    Format("openvino", "model.xml"),
    Format("pytorch", "model.pt", "pytorch_libtorch", ("libtorch",)),
    Format("pytorch", "model.pt2", "torch_aoti"),
    PYTHON,
)

SETTINGS = "model-settings.json"

# What the Python backend serves without a model.py, in the order in which it looks for it: first what says
# most, what needs no trust before pickles. Triton knows none of them, so they come after all that it knows.
PYTHON_FILES = (
    SETTINGS,
    "model.skops",
    "model.ubj",
    "model.json",
    "model.bst",
    "model.txt",
    "model.joblib",
    "model.pkl",
    "model.pickle",
)


def entries(version_directory: Path) -> frozenset[str]:
    """Names in a directory as `fill` wants them: folders end with "/". Raises OSError."""
    return frozenset(
        f"{each.name}/" if each.is_dir() else each.name for each in version_directory.iterdir()
    )


def fill(config: ModelConfig, model_name: str, version_entries: Collection[str] = ()) -> None:
    """Fill in name, backend, platform and default_model_filename, in place.

    model_name        name of the model's directory
    version_entries   names in the first version directory (first in string order, as in Triton),
                      folders with a "/" at the end; empty if there is no version
    Raises CoreError(INVALID) if the configuration names no backend and the files do not tell it.
    """
    if not config.name:
        config.name = model_name
    if config.backend == ENSEMBLE and config.platform in ("", ENSEMBLE):
        # Triton refuses this; published examples have it, and there is nothing else it can mean.
        config.backend, config.platform = "", ENSEMBLE
    if config.platform == ENSEMBLE or config.HasField("ensemble_scheduling"):
        return
    if (found := _format(config, version_entries)) is not None:
        _write(config, found)
    elif not (config.backend or config.platform or config.default_model_filename):
        if "." not in model_name and any(file in version_entries for file in PYTHON_FILES):
            _write(config, PYTHON)  # which of them it is, the backend looks for
        else:
            _fill_from_name(config, model_name)


def _format(config: ModelConfig, version_entries: Collection[str]) -> Format | None:
    """The known format that the configuration means, or that the files show."""
    platform, file = config.platform, config.default_model_filename
    if config.backend:
        known = [each for each in FORMATS if each.backend == config.backend]
        if config.backend != "tensorflow":
            # A .pt2 file may well be TorchScript: only the platform says otherwise.
            return next((each for each in known if each.is_named_by(platform, "")), _first(known))
        if platform or file:
            return _first(each for each in known if each.is_named_by(platform, file))
        return _first(each for each in known if each.is_in(version_entries))
    if platform or file:
        return _first(each for each in FORMATS if each.is_named_by(platform, file))
    return _first(each for each in FORMATS if each.is_in(version_entries))


def _first(formats: Iterable[Format]) -> Format | None:
    return next(iter(formats), None)


def _write(config: ModelConfig, found: Format) -> None:
    if not config.backend:
        config.backend = found.backend
    if not config.platform:
        config.platform = found.platform
    if not config.default_model_filename:
        config.default_model_filename = found.file


def _fill_from_name(config: ModelConfig, model_name: str) -> None:
    """A model called x.identity is one of the backend identity."""
    _, dot, backend = model_name.partition(".")
    if not dot:
        raise invalid(
            f"Invalid model name: Could not determine backend for model '{model_name}' with no "
            "backend in model configuration. Expected model name of the form "
            "'model.<backend_name>'."
        )
    config.backend = backend
    config.default_model_filename = f"model.{backend}"
