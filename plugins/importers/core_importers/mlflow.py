"""Read a model of MLflow: a folder with the file MLmodel.

A file that a backend of this server reads goes to it, if the answer is the same as MLflow's. Any other model
with the flavour python_function is served by mlflow.pyfunc, in a model.py.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

from core.errors import invalid
from core_importers import documents
from core_importers.declared import Declared
from core_importers.draft import Draft
from core_importers.mlflow_signature import Signature

_METHODS = ("predict", "predict_proba", "predict_log_proba")
_FORMS = ("pickle", "cloudpickle", "skops")


def read(folder: Path, draft: Draft) -> None:
    """Write the model of a folder into the draft.

    Raises CoreError(INVALID) for a file that is no MLmodel, or a flavour that cannot be served.
    """
    document = documents.read_yaml(folder / "MLmodel")
    flavors = document.get("flavors")
    if not isinstance(flavors, dict) or not flavors:
        raise invalid(f"'{folder}/MLmodel' lists no flavors: it was not written by MLflow")
    draft.name = _name(folder)
    model = _Model(folder, document, flavors, draft)
    native = next((name for name in _NATIVE if name in flavors and _NATIVE[name](model)), None)
    if native is None:
        model.pyfunc()
    version = document.get("mlflow_version", "unknown")
    others = ", ".join(name for name in flavors if name != "python_function")
    kind = native or f"python_function of {others or 'Python'}"
    draft.kind = f"MLflow model, flavour {kind}, written by MLflow {version}"


# Of a completed configuration.
_BATCHES = (
    "if the first dimension is dynamic, a request has at most 4 rows; max_batch_size allows more"
)


class _Model:
    """One MLmodel. Each method of a flavour returns whether it took the model.

    flavors   name → settings
    """

    def __init__(
        self, folder: Path, document: dict[str, Any], flavors: dict[str, Any], draft: Draft
    ):
        self._folder = folder
        self._document = document
        self._flavors = flavors
        self._draft = draft
        self._pyfunc: dict[str, Any] = flavors.get("python_function") or {}
        self._predict = str(self._pyfunc.get("predict_fn") or "predict")

    def sklearn(self) -> bool:
        """Take an estimator in a pickle or skops file, which core-adapters serves."""
        flavor = self._flavors["sklearn"]
        form = str(flavor.get("serialization_format") or _FORMS[0])
        if form not in _FORMS or self._predict not in _METHODS:
            return False
        return self._estimator(
            flavor, str(flavor.get("pickled_model", "model.pkl")), "scikit-learn"
        )

    def xgboost(self) -> bool:
        """Take a JSON or UBJSON file of xgboost, which core-adapters serves, if its signature is plain."""
        file = self._file(self._flavors["xgboost"].get("data", "model.xgb"))
        begin = file.read_bytes()[:2]
        if begin[:1] != b"{":
            return False  # the binary form before UBJSON
        signature = self._plain_signature()
        if signature is None:
            return False
        self._draft.copy(file, "model.json" if begin[1:2] in b'" \n' else "model.ubj")
        self._adapted(signature, ["xgboost", "scikit-learn"])
        return True

    def lightgbm(self) -> bool:
        """Take a text file of LightGBM or a pickled estimator, which core-adapters serves."""
        flavor = self._flavors["lightgbm"]
        name = str(flavor.get("data", "model.lgb"))
        file = self._file(name)
        with open(file, "rb") as stream:
            is_text = stream.read(4) == b"tree"
        if not is_text:
            return self._estimator(flavor, name, "lightgbm")
        if (signature := self._plain_signature()) is None:
            return False
        self._draft.copy(file, "model.txt")
        self._adapted(signature, ["lightgbm"])
        return True

    def onnx(self) -> bool:
        """Take an ONNX file with its external data, which backend onnxruntime serves. Return True."""
        file = self._file(self._flavors["onnx"].get("data", "model.onnx"))
        others = [each for each in file.parent.iterdir() if each.name.startswith(f"{file.name}.")]
        place = "model.onnx/" if others else ""
        self._draft.copy(file, f"{place}model.onnx")
        for each in others:  # external data
            self._draft.copy(each, f"{place}{each.name}")
        self._draft.config.backend = "onnxruntime"
        self._draft.need("backend-onnx")
        self._draft.notes.append(
            "inputs and outputs are those of the ONNX file, not the columns of the signature"
        )
        self._draft.notes.append(_BATCHES)
        return True

    def pytorch(self) -> bool:
        """Take a file of TorchScript or torch.export, which backend pytorch serves.

        Return False for any other file, such as a pickled module, and for TorchScript if the signature has no
        inputs, or inputs that are no tensors.
        """
        data = self._folder / str(self._flavors["pytorch"].get("model_data", "data"))
        file = next(iter(sorted(data.glob("model.pt*"))), None)
        suffix = _torch_format(file) if file is not None else ""
        signature = self._signature("INPUT__0", "OUTPUT__0")
        if file is None or not suffix or (suffix == "pt" and not signature.of_tensors):
            return False
        self._draft.copy(file, f"model.{suffix}")
        self._draft.config.backend = "pytorch"
        self._draft.need("backend-pytorch")
        if suffix == "pt":
            self._draft.tensors(signature.inputs, signature.outputs)
        else:  # the file says more than the signature
            self._draft.tensors([], [])
            self._draft.notes.append(_BATCHES)
        return True

    def pyfunc(self) -> None:
        """Take the whole folder, which mlflow.pyfunc serves in a model.py.

        Raises CoreError(INVALID) if the model does not have the flavour python_function.
        """
        if "python_function" not in self._flavors:
            raise invalid(
                f"'{self._folder}' has only the flavours {', '.join(self._flavors)}: MLflow itself serves it "
                "only with python_function, and no backend of this server reads it"
            )
        signature = self._signature("input", "predict")
        draft = self._draft
        draft.copy(self._folder, "source")
        draft.adapter("mlflow")
        if signature.inputs:
            outputs = signature.outputs or [Declared("predict", "STRING", (1,))]
            draft.tensors([*signature.inputs, *signature.parameters], outputs)
            if not signature.outputs:
                draft.notes.append(_no_outputs())
        else:
            draft.tensors([Declared("input", "STRING", (1,))], [Declared("output", "STRING", (1,))])
            draft.notes.append(
                "the model has no signature: `input` is JSON as for MLflow's /invocations "
                "(dataframe_split, dataframe_records, instances or inputs), `output` is JSON"
            )
        requirements = documents.requirements_in(self._folder / "requirements.txt")
        named = [each.partition("==")[0].lower() for each in requirements]
        if not any(each.startswith("mlflow") for each in named):
            draft.need("mlflow-skinny")
        draft.requirements([*requirements, "pandas"], "source/requirements.txt")
        draft.notes.append(
            "mlflow.pyfunc loads the model, which runs code in it; mlflow-skinny is enough in place of mlflow"
        )
        if self._pyfunc.get("env"):
            draft.notes.append(
                "its conda.yaml is not used; requirements.txt names the same packages"
            )

    def _estimator(self, flavor: dict[str, Any], name: str, package: str) -> bool:
        """Take an estimator in a pickle or a skops file.

        Return False if the signature is not plain, or the model brings modules, which only MLflow loads.
        """
        signature = self._plain_signature()
        if signature is None or flavor.get("code"):
            return False
        draft = self._draft
        skops = name.endswith(".skops")
        draft.copy(self._file(name), "model.skops" if skops else "model.pkl")
        self._adapted(signature, [package, *(["skops"] if skops else [])])
        types = ",".join(map(str, flavor.get("skops_trusted_types") or []))
        if not skops:
            draft.trust(name)
        elif types and draft.wishes.trusted:
            draft.parameter("TRUSTED", types)
        elif types:
            draft.notes.append(
                f"{name} holds types that skops does not know to be harmless, which its author trusts: "
                f"{types}. If you do too, import again with --force --trust"
            )
        return True

    def _plain_signature(self) -> Signature | None:
        """Return the signature; None if it is not `plain`, or has an output other than that of predict."""
        signature = self._signature("X", self._predict)
        names = {each.name for each in signature.outputs}
        if not signature.plain or names - {self._predict}:
            return None
        return signature

    def _adapted(self, signature: Signature, packages: list[str]) -> None:
        """Let core-adapters serve the file that was copied, and add the requirements of `packages`.

        A signature without inputs or outputs leaves these to core-adapters, which asks the model for them.
        """
        draft = self._draft
        draft.config.backend = "python"
        outputs = signature.outputs
        if signature.inputs and not outputs:
            draft.notes.append(_no_outputs())
        draft.tensors(signature.inputs, outputs)
        draft.need("core-adapters")
        wanted = documents.requirements_in(self._folder / "requirements.txt")
        heads = tuple(packages)
        found = [each for each in wanted if each.lower().startswith((*heads, "numpy", "pandas"))]
        missing = [p for p in packages if not any(each.lower().startswith(p) for each in found)]
        draft.need(*found, *missing)

    def _signature(self, unnamed_input: str, unnamed_output: str) -> Signature:
        return Signature(self._document, unnamed_input, unnamed_output)

    def _file(self, name: Any) -> Path:
        """Return a file of the model's folder. Raises CoreError(INVALID) if it is missing or outside."""
        path = (self._folder / str(name)).resolve()
        if not path.is_relative_to(self._folder.resolve()) or not path.is_file():
            raise invalid(f"'{self._folder}/MLmodel' names the file '{name}', which is not there")
        return path


_NATIVE = {
    "onnx": _Model.onnx,
    "pytorch": _Model.pytorch,
    "xgboost": _Model.xgboost,
    "lightgbm": _Model.lightgbm,
    "sklearn": _Model.sklearn,
}


def _name(folder: Path) -> str:
    """Return the name of the folder, or of the next one above that is not called model or artifacts."""
    path = folder.resolve()
    while path.name in ("model", "artifacts") and path.parent != path:
        path = path.parent
    return path.name or "model"


def _torch_format(file: Path) -> str:
    """Return pt for TorchScript, pt2 for torch.export, "" for a pickled module. Nothing is unpickled."""
    if not zipfile.is_zipfile(file):
        return ""
    if file.suffix == ".pt2":
        return "pt2"
    with zipfile.ZipFile(file) as archive:
        names = [each.partition("/")[2] for each in archive.namelist()]
    return "pt" if "constants.pkl" in names and any(n.startswith("code/") for n in names) else ""


def _no_outputs() -> str:
    return "the signature has no outputs: see to it that `output` in config.pbtxt fits the model"
