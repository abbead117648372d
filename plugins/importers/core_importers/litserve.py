"""Read a LitAPI class of LitServe.

class MyAPI(LitAPI) ─► config.pbtxt, model.py;  LitServer(MyAPI(max_batch_size=8)) ─► its settings
"""

from __future__ import annotations

import ast
import json
from typing import Any

from core.errors import invalid
from core_importers.declared import Declared
from core_importers.draft import Draft
from core_importers.python_file import PythonFile, constant

BASE = ("litserve.LitAPI", "litserve.api.LitAPI")
_SERVER = "litserve.LitServer"
_STAND_IN = {f"litserve.{name}" for name in ("LitAPI", "LitServer", "Callback", "Logger")}
# Arguments of LitAPI and LitServer that become the configuration.
_SETTINGS = {"max_batch_size": 1, "batch_timeout": 0.0, "stream": False, "enable_async": False}
_LOST = {
    "api_path": "api_path: the model has the paths of this server",
    "mcp": "mcp: this server has no endpoint for the Model Context Protocol",
    "loop": "loop: this server runs the model",
    "callbacks": "callbacks are not called",
    "middlewares": "middlewares are not run",
    "loggers": "loggers: LitAPI.log does nothing",
    "track_requests": "track_requests: the server counts requests itself",
    "timeout": "timeout: see queue policies of dynamic_batching",
}
_REFUSED = {"spec": "an OpenAI specification (spec=): it answers by its own HTTP paths"}


def classes(file: PythonFile) -> list[str]:
    """Return the LitAPI classes of a file that no other of its classes extends."""
    found = [name for name in file.classes if any(file.extends(name, base) for base in BASE)]
    bases = {file.origin(base) for name in found for base in file.classes[name].bases}
    return [name for name in found if name not in bases]


def read(file: PythonFile, name: str, draft: Draft) -> None:
    """Write a LitAPI class into the draft. Raises CoreError(INVALID) if it cannot be served."""
    draft.name = file.path.stem
    draft.kind = f"LitAPI {name} of {file.path.name}"
    methods = _methods(file, name)
    if "predict" not in methods:
        raise invalid(f"class '{name}' of '{file.path}' has no predict")
    arguments, settings = _settings(file, name, draft)
    stream = bool(settings["stream"])
    batch = int(settings["max_batch_size"])
    if stream:
        draft.config.model_transaction_policy.decoupled = True
        draft.notes.append("it streams: clients ask by gRPC streams or generate_stream")
    if settings["enable_async"]:
        draft.notes.append(
            "it is async: each instance awaits one request at a time; add instances by instance_group"
        )
    draft.batched(batch, float(settings["batch_timeout"]))
    fields = {}
    inputs, outputs = [], []
    if not draft.wished_inputs:
        inputs, fields["request"] = [Declared("request", "STRING", (1,))], "json"
    if not draft.wished_outputs:
        outputs, fields["response"] = [Declared("response", "STRING", (1,))], "json"
    draft.tensors(inputs, outputs)
    draft.parameter("LITAPI", f"{file.path.stem}:{name}")
    draft.parameter("LITAPI_ARGUMENTS", json.dumps(arguments))
    draft.parameter("LITAPI_SETTINGS", json.dumps(settings))
    draft.parameter("FIELDS", json.dumps(fields))
    if inputs:
        draft.notes.append(
            "`request` is the JSON of LitServe's requests; --input NAME:TYPE[DIMS] makes a tensor of a field"
        )
    draft.adapter("litserve", "tensor_fields.py")
    draft.stand_in("litserve", "litserve", file.uses("litserve") - _STAND_IN)
    draft.need(*file.packages("litserve"))
    if others := {each for each in file.modules() if each in ("fastapi", "starlette")}:
        draft.notes.append(
            f"{', '.join(sorted(others))}: requests are dicts here, not HTTP requests"
        )


def _methods(file: PythonFile, name: str) -> set[str]:
    found: set[str] = set()
    left = [name]
    while left:
        node = file.classes.get(left.pop())
        if node is not None:
            found |= {
                each.name
                for each in node.body
                if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))
            }
            left += [file.origin(base) for base in node.bases]
    return found


def _settings(file: PythonFile, name: str, draft: Draft) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the constructor's arguments and the settings, from the calls in the file.

    Raises CoreError(INVALID) for arguments that are no literals, or that cannot be served.
    """
    settings: dict[str, Any] = dict(_SETTINGS)
    made = list(file.calls(name))
    calls = [*_super_calls(file.classes[name]), *made, *file.calls(_SERVER)]
    if len(made) > 1:
        draft.notes.append(f"{name} is made {len(made)} times; the last one counts")
    arguments: dict[str, Any] = {"args": [], "kwargs": {}}
    for call in calls:
        of_server = file.origin(call.func) == _SERVER
        if call in made:
            arguments = {"args": [_literal(file, each) for each in call.args], "kwargs": {}}
        for keyword in call.keywords:
            key = keyword.arg or "**"
            if key in _REFUSED and not _is_none(keyword.value):
                raise invalid(f"'{file.path}' cannot be taken: {_REFUSED[key]}")
            if key in settings:
                settings[key] = _literal(file, keyword.value)
            elif key in _LOST:
                draft.notes.append(_LOST[key])
            elif key == "workers_per_device" and of_server:
                value = _literal(file, keyword.value)
                draft.instances(value if isinstance(value, int) else 1)
            elif call in made:
                arguments["kwargs"][key] = _literal(file, keyword.value)
    return arguments, settings


def _super_calls(node: ast.ClassDef) -> list[ast.Call]:
    """Return the calls of any `….__init__` in a class, such as super().__init__(…)."""
    return [
        each
        for each in ast.walk(node)
        if isinstance(each, ast.Call)
        and isinstance(each.func, ast.Attribute)
        and each.func.attr == "__init__"
    ]


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _literal(file: PythonFile, node: ast.expr) -> Any:
    try:
        return constant(node)
    except ValueError:
        raise invalid(
            f"'{file.path}', line {node.lineno}: '{ast.unparse(node)}' is no literal; nothing of the file is "
            "run to find its value. Write the value there, or give it a default in __init__"
        ) from None
