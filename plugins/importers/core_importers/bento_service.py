"""Read a service of BentoML: a class with @bentoml.service, or a Bento with such a class.

class Iris: @bentoml.api def predict(self, x: np.ndarray) -> int ─► inputs, outputs, model.py
"""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

from core.errors import CoreError, invalid
from core_importers import documents, sources
from core_importers.annotations import Field, field
from core_importers.draft import Draft
from core_importers.python_file import PythonFile, constant
from core_importers.unpacking import unpack

Method = ast.FunctionDef | ast.AsyncFunctionDef

_API, _SERVICE = "bentoml.api", "bentoml.service"
_STAND_IN = {
    f"bentoml.{name}"
    for name in (
        "Context", "api", "asgi_app", "images", "importing", "lightgbm", "models", "on_deployment",
        "on_shutdown", "on_startup", "onnx", "picklable_model", "service", "sklearn", "task", "torchscript",
        "validators", "xgboost",
    )
}  # fmt: skip
_STORED = ("bentoml.models.get", "bentoml.models.BentoModel")
_REFUSED = {
    "bentoml.depends": "it depends on other services (bentoml.depends): import each of them, and connect "
    "them by an ensemble or BLS",
}
_LOST = {
    "bentoml.task": "tasks (@bentoml.task) are not taken",
    "bentoml.asgi_app": "mounted ASGI apps are not taken",
    "bentoml.Context": "a parameter of type bentoml.Context gets None",
}


def classes(file: PythonFile) -> list[str]:
    """Return the classes of a file with @bentoml.service."""
    return [
        name
        for name, node in file.classes.items()
        if any(_decorator(file, each) == _SERVICE for each in node.decorator_list)
    ]


def refuse_old(file: PythonFile) -> None:
    """Raise CoreError(INVALID) for a service of BentoML before 1.2: bentoml.Service(...)."""
    for name in ("bentoml.Service", "bentoml.legacy.Service"):
        for call in file.calls(name):
            raise invalid(
                f"'{file.path}', line {call.lineno}: bentoml.Service with runners is the form before BentoML "
                "1.2; move its functions to a class with @bentoml.service and @bentoml.api"
            )


def read_bento(path: Path, draft: Draft) -> None:
    """Write the service of a Bento, a folder or a .bento archive, into the draft.

    Raises CoreError(INVALID) if it has no such service, or one that cannot be served.
    """
    folder = path
    if path.is_file():
        folder = draft.folder.parent / "unpacked"
        unpack(path, folder)
    if not (folder / "bento.yaml").is_file():
        raise invalid(
            f"'{path}' has no bento.yaml: it was not written by `bentoml build` or export"
        )
    document = documents.read_yaml(folder / "bento.yaml")
    service = str(document.get("service", ""))
    module, _, name = service.partition(":")
    file_path = folder / "src" / (module.replace(".", "/") + ".py")
    if not file_path.is_file():
        raise invalid(
            f"'{path}': bento.yaml names the service '{service}', and src has no such module"
        )
    file = PythonFile(file_path)
    found = classes(file)
    if name not in found:
        refuse_old(file)
        raise invalid(f"'{file_path}' has no class '{name}' with @bentoml.service; it has {found}")
    draft.copy(folder / "src", "source")
    read(file, name, "", draft, module, folder / "models")
    draft.name = str(document.get("name") or draft.name)
    requirements = folder / "env" / "python" / "requirements.txt"
    if requirements.is_file():
        draft.copy(requirements, "source-requirements.txt")
        draft.needs.clear()
        draft.requirements(documents.requirements_in(requirements), "source-requirements.txt")


def read(
    file: PythonFile,
    name: str,
    method: str,
    draft: Draft,
    module: str = "",
    models: Path | None = None,
) -> None:
    """Write a service of a file into the draft.

    method   the API to serve; "" for predict, or the only one
    models   folder with the models of a Bento; else BentoML's store
    Raises CoreError(INVALID) if it cannot be served.
    """
    node = file.classes[name]
    _check(file, draft)
    api, options = _api(file, node, method, draft)
    draft.name = name.lower()
    draft.kind = f"BentoML service {name}, API {api.name}"
    inputs = _inputs(file, api)
    output = field(file, "output", api.returns)
    batchable = options.get("batchable") is True
    if batchable:
        inputs, output = _batched(inputs, output, options, draft)
    stream = output.stream
    if stream:
        draft.config.model_transaction_policy.decoupled = True
        draft.notes.append("it streams: clients ask by gRPC streams or generate_stream")
    draft.tensors([each.tensor for each in inputs], [output.tensor])
    fields = {each.tensor.name: each.kind for each in [*inputs, output]}
    draft.parameter("FIELDS", json.dumps(fields))
    draft.parameter("BENTOML_API", f"{module or file.path.stem}:{name}.{api.name}")
    _service(file, node, draft)
    _bring_models(file, models, draft)
    if file.uses("bentoml") & {"bentoml.sklearn", "bentoml.picklable_model"}:
        draft.trust("what the service loads from the store")
    draft.adapter("bentoml", "tensor_fields.py")
    draft.stand_in("bentoml", "bentoml", file.uses("bentoml") - _STAND_IN)
    draft.need(*file.packages("bentoml"))
    unknown = [each.tensor.name for each in [*inputs, output] if each.kind in ("array", "tensor")]
    unknown = [n for n in unknown if _is_json(n, [*inputs, output], draft)]
    if unknown:
        draft.notes.append(
            f"{', '.join(unknown)}: the annotation has no shape, so the array is JSON in a STRING; --input "
            "and --output NAME:TYPE[DIMS] make tensors of them"
        )


def _is_json(name: str, fields: list[Field], draft: Draft) -> bool:
    wished = {each.name for each in [*draft.wished_inputs, *draft.wished_outputs]}
    found = next(each for each in fields if each.tensor.name == name)
    return found.tensor.datatype == "STRING" and name not in wished


def _check(file: PythonFile, draft: Draft) -> None:
    """Raise CoreError(INVALID) if the file uses a name of _REFUSED; add a note for each name of _LOST."""
    for node in ast.walk(file.tree):
        origin = file.origin(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""
        if _REFUSED.get(origin):
            raise invalid(f"'{file.path}' cannot be taken: {_REFUSED[origin]}")
        if origin in _LOST and _LOST[origin] not in draft.notes:
            draft.notes.append(_LOST[origin])


def _decorator(file: PythonFile, node: ast.expr) -> str:
    return file.origin(node.func if isinstance(node, ast.Call) else node)


def _api(
    file: PythonFile, node: ast.ClassDef, wanted: str, draft: Draft
) -> tuple[Method, dict[str, Any]]:
    """Return the method to serve and the options of its decorator; note the APIs that are not taken.

    The method is the API `wanted`, or for "" the API predict, or else the only one.
    Raises CoreError(INVALID) if there is no such API, or more than one to choose from.
    """
    apis: dict[str, tuple[Method, dict[str, Any]]] = {}
    for each in node.body:
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for decorator in each.decorator_list:
                if _decorator(file, decorator) == _API:
                    apis[each.name] = each, _keywords(decorator)
    there = ", ".join(apis) or "none"
    if wanted and wanted not in apis:
        raise invalid(f"'{file.path}': class '{node.name}' has no API '{wanted}'; it has {there}")
    name = wanted or ("predict" if "predict" in apis else next(iter(apis), ""))
    if not name or (not wanted and name != "predict" and len(apis) > 1):
        raise invalid(
            f"'{file.path}': class '{node.name}' has the APIs {there}; name one: "
            f"{file.path}:{node.name}.METHOD"
        )
    if others := [each for each in apis if each != name]:
        draft.notes.append(
            f"a model has one API: {', '.join(others)} not taken; import {file.path}:{node.name}."
            f"{others[0]} with another --name"
        )
    return apis[name]


def _keywords(node: ast.expr) -> dict[str, Any]:
    """Return name → value of a decorator's keyword arguments that are literals; others are left out."""
    found: dict[str, Any] = {}
    for each in node.keywords if isinstance(node, ast.Call) else []:
        try:
            found[each.arg or "**"] = constant(each.value)
        except ValueError:
            continue
    return found


def _inputs(file: PythonFile, api: Method) -> list[Field]:
    arguments = api.args
    if arguments.vararg is not None:
        raise _unclear(file, api, f"*{arguments.vararg.arg}")
    given = [*arguments.posonlyargs, *arguments.args][1:]  # without self
    optional = len(given) - len(arguments.defaults)
    found = [field(file, each.arg, each.annotation, i >= optional) for i, each in enumerate(given)]
    for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        found.append(field(file, each.arg, each.annotation, default is not None))
    found = [each for each in found if each.tensor.name not in ("ctx", "context")]
    if not found:
        raise _unclear(file, api, "no parameter")
    return found


def _unclear(file: PythonFile, api: Method, what: str) -> CoreError:
    return invalid(
        f"'{file.path}', line {api.lineno}: {api.name} has {what}; a model needs named inputs"
    )


def _batched(
    inputs: list[Field], output: Field, options: dict[str, Any], draft: Draft
) -> tuple[list[Field], Field]:
    """Let the server batch a batchable API, without delay, and return its fields for one row.

    Each field loses its first dimension, which is the batch; one that had no other gets [1].
    If a field is not a list or array of numbers or strings, or `batch_dim` is not 0: add a note, set no
    batching, and return the fields unchanged.
    options   of @bentoml.api
    """
    fields = [*inputs, output]
    wished = {each.name: each for each in [*draft.wished_inputs, *draft.wished_outputs]}
    tensors = [wished.get(each.tensor.name, each.tensor) for each in fields]
    if options.get("batch_dim", 0) not in (0, (0, 0), [0, 0]) or any(
        each.kind not in ("list", "array", "tensor")
        or (t.datatype == "STRING" and each.kind != "list")
        for each, t in zip(fields, tensors, strict=True)
    ):
        draft.notes.append(
            "it is batchable, but its types have no batch dimension here: requests run alone"
        )
        return inputs, output
    draft.batched(int(options.get("max_batch_size", 100)), 0.0)
    shrunk = [
        each._replace(tensor=each.tensor._replace(dims=each.tensor.dims[1:] or (1,)))
        for each in fields
    ]
    return shrunk[:-1], shrunk[-1]


def _service(file: PythonFile, node: ast.ClassDef, draft: Draft) -> None:
    """Make as many instances as `workers` of @bentoml.service says; one if it is no number."""
    for each in node.decorator_list:
        if _decorator(file, each) == _SERVICE:
            workers = _keywords(each).get("workers")
            draft.instances(workers if isinstance(workers, int) else 1)


def _bring_models(file: PythonFile, folder: Path | None, draft: Draft) -> None:
    """Copy the models that the file names from the store to 1/bentoml_store, where the service finds them.

    folder   folder with the models of a Bento; BentoML's own store if it is None or missing
    A model that is not in the store becomes a note. Raises CoreError(NOT_FOUND) for an unknown version.
    """
    store = folder if folder is not None and folder.is_dir() else sources.model_store()
    for tag in _tags(file):
        name, _, version = tag.partition(":")
        if not (store / name).is_dir():
            draft.notes.append(
                f"the store '{store}' has no model '{tag}': the service must find it where it runs"
            )
            continue
        found = sources.version_of(store / name, version)
        draft.copy(found, f"bentoml_store/models/{name}/{found.name}")
        (draft.version / "bentoml_store" / "models" / name / "latest").write_text(found.name)


def _tags(file: PythonFile) -> set[str]:
    """Return the tags of models in calls of bentoml: models.get, BentoModel, load_model."""
    found = set()
    for node in ast.walk(file.tree):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        origin = file.origin(node.func)
        loads = origin.startswith("bentoml.") and origin.endswith(".load_model")
        first = node.args[0]
        if (origin in _STORED or loads) and isinstance(first, ast.Constant):
            found.add(str(first.value))
    return found
