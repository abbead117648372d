"""Operations on models of the server: load_model, unload_model, is_model_ready, get_model_dir."""

from __future__ import annotations

from binascii import b2a_base64

from backend_python.api.arguments import text
from backend_python.api.errors import TritonModelException
from backend_python.api.host import current


def get_model_dir() -> str:
    """Return the version directory of the calling model."""
    return current().model_directory


def load_model(model_name: str, config: str = "", files: dict[str, bytes] | None = None) -> None:
    """Load or reload a model. Raises TritonModelException with the server's text if it fails.

    config   configuration as JSON, instead of config.pbtxt
    files    {"file:1/model.onnx": content}, instead of the model's folder; requires config
    """
    name = text("load_model: model_name", model_name)
    config = text("load_model: config", config)
    if files is not None and not isinstance(files, dict):
        raise TritonModelException(
            f"failed to load model '{name}', files should be a dictionary of file paths and file "
            "contents"
        )
    encoded = {
        text("load_model: a path of files", path): _base64(content)
        for path, content in (files or {}).items()
    }
    current().call("load_model", {"name": name, "config": config, "files": encoded})


def _base64(content: bytes | str) -> str:
    data = content.encode() if isinstance(content, str) else content
    return b2a_base64(data, newline=False).decode()


def unload_model(model_name: str, unload_dependents: bool = False) -> None:
    """Begin to unload a model; returns before the unload ends."""
    name = text("unload_model: model_name", model_name)
    current().call("unload_model", {"name": name, "unload_dependents": bool(unload_dependents)})


def is_model_ready(model_name: str, model_version: str = "") -> bool:
    """Return whether a version of a model can serve; the newest version if `model_version` is ""."""
    name = text("is_model_ready: model_name", model_name)
    version = text("is_model_ready: model_version", model_version)
    return bool(current().call("is_model_ready", {"name": name, "version": version}))
