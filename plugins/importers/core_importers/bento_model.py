"""Read a model of BentoML's store: a folder with model.yaml, or a .bentomodel archive.

model.yaml ─► module (bentoml.sklearn, …) ─► saved_model.* for the backend that reads it
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from core.errors import invalid
from core_importers import documents, mlflow
from core_importers.draft import Draft
from core_importers.unpacking import unpack

_METHODS = ("predict", "predict_proba", "predict_log_proba", "decision_function", "transform")
_REASONS = {
    "pytorch": "it is a pickled module, and has neither inputs nor outputs; export it by torch.export",
    "pytorch_lightning": "it has neither inputs nor outputs; export it by torch.export",
    "transformers": "it is a pipeline in Python; import the service that calls it",
    "diffusers": "it is a pipeline in Python; import the service that calls it",
    "keras": "no backend of this server reads Keras files; export it by model.export, as a SavedModel",
}


def read(path: Path, draft: Draft) -> None:
    """Write a stored model into the draft.

    path   the model's folder, or an archive
    Raises CoreError(INVALID) if it has no model.yaml, or if no backend of this server reads it.
    """
    folder = path
    if path.is_file():
        folder = draft.folder.parent / "unpacked"
        unpack(path, folder)
    if not (folder / "model.yaml").is_file():
        raise invalid(f"'{path}' has no model.yaml: it was not written by `bentoml models export`")
    document = documents.read_yaml(folder / "model.yaml")
    module = str(document.get("module", "")).rpartition(".")[2]
    draft.name = str(document.get("name") or path.stem)
    context = document.get("context") or {}
    versions: dict[str, Any] = context.get("framework_versions") or {}
    reader = _READERS.get(module)
    if reader is None:
        reason = _REASONS.get(
            module, "no backend of this server reads it; import the service that calls it"
        )
        raise invalid(f"'{path}' is a model of bentoml.{module}: {reason}")
    reader(folder, draft, document)
    bentoml = context.get("bentoml_version", "unknown")
    version = document.get("version")
    draft.kind = (
        f"BentoML model of bentoml.{module}, version {version}, written by BentoML {bentoml}"
    )
    wanted = [f"{name}=={version}" for name, version in versions.items()]
    draft.need(*wanted)
    if (folder / "custom_objects.pkl").is_file():
        draft.notes.append("its custom_objects are not taken")


def _saved(folder: Path) -> Path:
    found = sorted(folder.glob("saved_model.*"))
    if len(found) != 1:
        names = ", ".join(each.name for each in folder.iterdir())
        raise invalid(f"'{folder}': expected one file saved_model.*, found {names}")
    return found[0]


def _pickle(folder: Path, draft: Draft, document: dict[str, Any]) -> None:
    """Import a pickled object for core-adapters. This function declares no outputs itself.

    core-adapters offers methods such as `predict` as outputs when it loads the model.
    Raises CoreError(INVALID) if `signatures` has none of _METHODS.
    """
    file = _saved(folder)
    methods = [name for name in document.get("signatures") or {} if name in _METHODS]
    if not methods:
        raise invalid(
            f"'{folder}' has the signatures {', '.join(document.get('signatures') or {})}: a pickled object "
            f"needs one of {', '.join(_METHODS)}; import the service that calls it"
        )
    draft.copy(file, "model.pkl")
    draft.config.backend = "python"
    draft.need("core-adapters")
    draft.trust(file.name)
    draft.tensors([], [])


def _booster(folder: Path, draft: Draft, document: dict[str, Any]) -> None:
    """Import a file of xgboost or LightGBM for core-adapters. Backend fil could read the same file."""
    file = _saved(folder)
    with open(file, "rb") as stream:
        begin = stream.read(4)
    suffix = "txt" if begin == b"tree" else "json" if begin[:2] in (b'{"', b"{ ", b"{\n") else "ubj"
    draft.copy(file, f"model.{suffix}")
    draft.config.backend = "python"
    draft.need("core-adapters")
    draft.tensors([], [])


def _onnx(folder: Path, draft: Draft, document: dict[str, Any]) -> None:
    draft.copy(_saved(folder), "model.onnx")
    draft.config.backend = "onnxruntime"
    draft.need("backend-onnx")


def _saved_model(folder: Path, draft: Draft, document: dict[str, Any]) -> None:
    """Import a SavedModel, which lies in the folder of the stored model itself."""
    if not (folder / "saved_model.pb").is_file():
        raise invalid(f"'{folder}' has no saved_model.pb")
    for part in ("saved_model.pb", "variables", "assets"):
        if (folder / part).exists():
            draft.copy(folder / part, f"model.savedmodel/{part}")
    draft.config.backend, draft.config.platform = "tensorflow", "tensorflow_savedmodel"
    draft.need("backend-tensorflow[cpu]")


def _torchscript(folder: Path, draft: Draft, document: dict[str, Any]) -> None:
    if not (draft.wished_inputs and draft.wished_outputs):
        raise invalid(
            f"'{folder}' is TorchScript, which has no datatypes and shapes: give them by --input and "
            "--output, such as --input INPUT__0:FP32[-1,4] --output OUTPUT__0:FP32[-1,3]"
        )
    draft.copy(_saved(folder), "model.pt")
    draft.config.backend = "pytorch"
    draft.tensors([], [])
    draft.need("backend-pytorch")


def _mlflow(folder: Path, draft: Draft, document: dict[str, Any]) -> None:
    inside = folder / "mlflow_model"
    if not (inside / "MLmodel").is_file():
        raise invalid(f"'{folder}' has no mlflow_model/MLmodel")
    name = draft.name
    mlflow.read(inside, draft)
    draft.name = name


_READERS = {
    "sklearn": _pickle,
    "picklable_model": _pickle,
    "xgboost": _booster,
    "lightgbm": _booster,
    "onnx": _onnx,
    "tensorflow": _saved_model,
    "torchscript": _torchscript,
    "mlflow": _mlflow,
}
