"""Check a version without loading it: its files. Only TensorRT on a GPU can read what an engine says.

core check ─► [check_version]
"""

from __future__ import annotations

from pathlib import Path

from backend_tensorrt.loading import FILENAME
from core.backend import Backend
from core.completion import is_described
from core.config import ModelConfig
from core.errors import internal
from core.model_file import check_readable, not_found

_OTHER_FORMATS = {
    b"PK\x03\x04": "a zip archive, such as a file of PyTorch; build an engine of it with Torch-TensorRT",
    b"\x08": "probably an ONNX model; build an engine of it with trtexec --onnx",
    b"GGUF": "a GGUF file, which backend llamacpp runs",
}


def check_version(config: ModelConfig, path: Path, backend: Backend) -> bool:
    """Check the file of each compute capability; return whether the configuration describes all tensors.

    path   the version's folder
    Raises CoreError for a file that is missing, empty or of another format.
    """
    names = [config.default_model_filename or FILENAME]
    if config.cc_model_filenames and not (path / names[0]).is_file():
        names = []  # each capability may have its own
    for name in dict.fromkeys((*names, *sorted(config.cc_model_filenames.values()))):
        file = path / name
        if not file.is_file():
            raise not_found(file, config.name)
        check_readable(file, config.name)
        _check_head(file, config.name)
    return is_described(config)


def _check_head(file: Path, model: str) -> None:
    with file.open("rb") as opened:
        head = opened.read(8)
    if not head:
        raise internal(f"model '{model}': '{file}' is empty; build or copy the engine again")
    for beginning, what in _OTHER_FORMATS.items():
        if head.startswith(beginning):
            raise internal(f"model '{model}': '{file}' is no engine of TensorRT: it is {what}")
