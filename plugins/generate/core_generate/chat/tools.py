"""Reads `tools` and `tool_choice` of OpenAI's chat: what a model may call, and what it must call."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from core_generate.chat.fields import (
    FieldError,
    check,
    check_choice,
    check_names,
    get,
    join,
    listed,
    need,
    shown,
)
from core_generate.chat.structure import check_schema, with_references_below
from core_generate.engine import Structure

MOST_TOOLS = 512

_NAME = re.compile(r"[A-Za-z0-9_.:/-]{1,128}")
_NO_PARAMETERS = {"type": "object", "properties": {}, "additionalProperties": False}

Choice = Literal["none", "auto", "required", "named"]


@dataclass(frozen=True, slots=True)
class Tools:
    """What a model may call.

    functions   the tools in OpenAI's form, for a chat template; () for none
    choice      "none": it may call none; "auto": it decides; "required": it must call at least one; "named":
                it must call `name`
    name        the function for "named", else ""
    structure   what the generated text must match: a list of calls for "required", as
                [{"name": …, "arguments": {…}}], only the arguments for "named"; None for "none", and for
                "auto" unless the answer must match a schema: then such a list, one call, or the answer
    parallel    whether one text may have several calls
    """

    functions: Sequence[dict[str, Any]] = ()
    choice: Choice = "none"
    name: str = ""
    structure: Structure | None = None
    parallel: bool = True

    @property
    def names(self) -> frozenset[str]:
        """Return the names of the functions."""
        return frozenset(each["function"]["name"] for each in self.functions)


def read_tools(
    tools: Any, tool_choice: Any = None, parallel: Any = None, path: str = "tools"
) -> Tools:
    """Return what the fields `tools`, `tool_choice` and `parallel_tool_calls` of OpenAI's chat ask for.

    Each may be None, if the request lacks it. `path` is that of `tools`.
    Raises FieldError (INVALID) with the path of the wrong field.
    """
    functions = [] if tools is None else _functions(tools, path)
    if parallel is not None:
        check(parallel, bool, "parallel_tool_calls")
    choice, names = _choice(tool_choice, functions)
    return tools_of(functions, choice, names, parallel is not False)


def tools_of(
    functions: Sequence[dict[str, Any]], choice: Choice, names: Sequence[str], parallel: bool
) -> Tools:
    """Return Tools with the functions whose names are in `names`; with no function for "none".

    functions  in OpenAI's form, already checked
    names      names of the functions that the model may call, all known; for "named" exactly one
    parallel   whether one text may have several calls
    """
    known = set(names)
    allowed = [each for each in functions if each["function"]["name"] in known]
    if choice == "named":
        schema = _parameters(allowed[0])
        return Tools(allowed, choice, names[0], Structure(schema=schema), parallel)
    if choice == "required":
        structure = Structure(schema=_calls_schema(allowed, parallel))
        return Tools(allowed, choice, "", structure, parallel)
    return Tools(allowed if choice == "auto" else (), choice, parallel=parallel)


def with_answer(tools: Tools, answer: Structure) -> Tools:
    """Return tools of the choice "auto" whose structure permits calls, or an answer that matches a schema.

    The calls are a list, as for "required", or one call without a list.
    """
    definitions: dict[str, Any] = {}
    call = _call_schema(tools.functions, definitions)
    whole = {"type": "object"} if answer.schema is True else answer.schema
    schema: dict[str, Any] = {
        "anyOf": [_list_of(call, tools.parallel), call, _placed(whole, "answer", definitions)]
    }
    if definitions:
        schema["$defs"] = definitions
    return replace(tools, structure=Structure(schema=schema))


def _functions(tools: Any, path: str) -> list[dict[str, Any]]:
    functions: list[dict[str, Any]] = []
    for at, tool in enumerate(check_count(tools, path)):
        where = f"{path}[{at}]"
        check_choice(check(tool, dict, where).get("type"), ("function",), join(where, "type"))
        check_names(tool, {"type", "function"}, where)
        function = need(tool, "function", dict, where)
        functions.append(read_function(function, join(where, "function")))
    check_unique(functions, path)
    return functions


def check_count(tools: Any, path: str) -> list[Any]:
    """Return `tools` if it is a list of at most MOST_TOOLS values, else raise FieldError."""
    if len(check(tools, list, path)) > MOST_TOOLS:
        raise FieldError(path, f"expected at most {MOST_TOOLS} tools, found {len(tools):,}")
    found: list[Any] = tools
    return found


def read_function(function: Any, path: str, schema_name: str = "parameters") -> dict[str, Any]:
    """Return a tool in OpenAI's form, made of an object with name, description, parameters and strict.

    `strict` is checked and left out: arguments follow their schema where the choice is "required" or "named".
    A function without a schema takes no arguments.
    schema_name   name of the field with the JSON schema of the arguments
    Raises FieldError with the path of the wrong field.
    """
    check_names(function, {"name", "description", "strict", schema_name}, path)
    check_name(function.get("name"), join(path, "name"))
    get(function, "strict", bool, path)
    document = {"name": function["name"], "description": get(function, "description", str, path)}
    schema = get(function, schema_name, dict, path)
    if schema:
        check_schema(schema, join(path, schema_name))
        check_choice(schema.get("type", "object"), ("object",), f"{path}.{schema_name}.type")
    document["parameters"] = schema or dict(_NO_PARAMETERS)
    kept = {name: value for name, value in document.items() if value is not None}
    return {"type": "function", "function": kept}


def check_name(name: Any, path: str) -> str:
    """Return `name` if it is a valid name of a function, else raise FieldError.

    A valid one has 1 to 128 ASCII letters, digits and any of _ . : / -
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise FieldError(
            path, f"expected 1 to 128 letters, digits and any of _ . : / -, found {shown(name)}"
        )
    return name


def check_unique(functions: Sequence[dict[str, Any]], path: str) -> None:
    """Raise FieldError if two functions have the same name. `path` is that of their list."""
    seen: set[str] = set()
    for at, each in enumerate(functions):
        name = each["function"]["name"]
        if name in seen:
            raise FieldError(f"{path}[{at}]", f"there are two functions with the name '{name}'")
        seen.add(name)


def _choice(value: Any, functions: Sequence[dict[str, Any]]) -> tuple[Choice, list[str]]:
    path = "tool_choice"
    names = [each["function"]["name"] for each in functions]
    if value is None:
        return ("auto" if names else "none"), names
    if isinstance(value, str):
        kind = check_choice(value, ("none", "auto", "required"), path)
        return choice_of(kind, names, path)
    kind = check_choice(
        check(value, dict, path).get("type"), ("function", "allowed_tools"), join(path, "type")
    )
    if kind == "function":
        check_names(value, {"type", "function"}, path)
        name = need(need(value, "function", dict, path), "name", str, f"{path}.function")
        return "named", [check_known(name, names, f"{path}.function.name")]
    return _allowed(need(value, "allowed_tools", dict, path), names, f"{path}.allowed_tools")


def choice_of(kind: str, names: Sequence[str], path: str) -> tuple[Choice, list[str]]:
    """Return the choice for `kind`, which is "none", "auto" or "required", and a list of `names`.

    names   the functions that the model may call; without any, "auto" becomes "none", and "required" raises
            FieldError
    """
    if kind == "required":
        if not names:
            raise FieldError(path, "'required' needs a function in 'tools'")
        return "required", list(names)
    return ("auto" if kind == "auto" and names else "none"), list(names)


def check_known(name: str, names: Sequence[str], path: str) -> str:
    """Return `name` if it is one of `names`, those of the functions; else raise FieldError."""
    if name not in names:
        known = listed(names[:20]) if names else "none"
        raise FieldError(path, f"no function of 'tools' has the name {shown(name)}; known: {known}")
    return name


def _allowed(document: dict[str, Any], names: Sequence[str], path: str) -> tuple[Choice, list[str]]:
    mode = check_choice(document.get("mode"), ("auto", "required"), join(path, "mode"))
    chosen = []
    for at, each in enumerate(check_count(need(document, "tools", list, path), f"{path}.tools")):
        where = f"{path}.tools[{at}]"
        function = need(check(each, dict, where), "function", dict, where)
        name = need(function, "name", str, f"{where}.function")
        chosen.append(check_known(name, names, f"{where}.function.name"))
    return choice_of(mode, chosen, f"{path}.tools")


def _parameters(function: dict[str, Any]) -> Any:
    return function["function"]["parameters"]


def _calls_schema(functions: Sequence[dict[str, Any]], parallel: bool) -> dict[str, Any]:
    """Return the JSON schema of a list of calls of these functions, at least one; one if not `parallel`."""
    definitions: dict[str, Any] = {}
    schema = _list_of(_call_schema(functions, definitions), parallel)
    return {**schema, "$defs": definitions} if definitions else schema


def _list_of(item: dict[str, Any], parallel: bool) -> dict[str, Any]:
    schema = {"type": "array", "items": item, "minItems": 1}
    return schema if parallel else {**schema, "maxItems": 1}


def _call_schema(
    functions: Sequence[dict[str, Any]], definitions: dict[str, Any]
) -> dict[str, Any]:
    """Return the JSON schema of a call of one of these functions; `definitions` as of `_placed`."""
    calls = [
        {
            "type": "object",
            "properties": {
                "name": {"type": "string", "enum": [each["function"]["name"]]},
                "arguments": _placed(_parameters(each), f"call{at}", definitions),
            },
            "required": ["name", "arguments"],
            "additionalProperties": False,
        }
        for at, each in enumerate(functions)
    ]
    return calls[0] if len(calls) == 1 else {"anyOf": calls}


def _placed(schema: Any, name: str, definitions: dict[str, Any]) -> Any:
    """Return a schema for use within another one.

    One that has references moves as a whole into `definitions`, the other's $defs, where they are adapted.
    """
    copy, has_references = with_references_below(schema, f"#/$defs/{name}")
    if not has_references:
        return schema
    definitions[name] = copy
    return {"$ref": f"#/$defs/{name}"}
