"""Other models of the server, and this one's place: load_model, unload_model, is_model_ready."""

from __future__ import annotations

from binascii import b2a_base64

from backend_python.api.host import current


def get_model_dir() -> str:
    """The version directory of the model that calls."""
    return current().model_directory


def load_model(model_name: str, config: str = "", files: dict[str, bytes] | None = None) -> None:
    """Load a model, or load it again. TritonModelException with the server's text if it fails.

    config   its configuration as JSON in place of config.pbtxt
    files    {"file:1/model.onnx": content} in place of the model's folder; needs config
    """
    encoded = {
        path: b2a_base64(content, newline=False).decode() for path, content in (files or {}).items()
    }
    current().call("load_model", {"name": model_name, "config": config, "files": encoded})


def unload_model(model_name: str, unload_dependents: bool = False) -> None:
    """Begin to unload a model; returns before it is gone."""
    current().call(
        "unload_model", {"name": model_name, "unload_dependents": bool(unload_dependents)}
    )


def is_model_ready(model_name: str, model_version: str = "") -> bool:
    """Whether a model can serve; of its newest version if none is named."""
    answer = current().call("is_model_ready", {"name": model_name, "version": model_version})
    return bool(answer)
