"""model.json: the arguments of vLLM's engine, checked, with its paths resolved. Imports no part of vLLM.

model.json, names that vLLM knows ─► [read_arguments] ─► arguments of AsyncEngineArgs
"""

from __future__ import annotations

import contextlib
import difflib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from backend_vllm.installed import Kinds
from core.errors import CoreError, invalid
from core.model_file import check_readable, not_found

FILE = "model.json"
CONFIG = "config.json"
# Arguments whose value is a folder or file, or a name at Hugging Face.
_PLACES = ("model", "tokenizer", "hf_config_path", "model_weights")
_WORDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    list: "a list",
    dict: "an object",
    type(None): "null",
}
_REFUSED = {
    "skip_tokenizer_init": "requests have texts, which need the tokenizer",
    "enable_prompt_embeds": "requests have no input for embeddings of prompts",
}

Arguments = dict[str, Any]


def read_arguments(file: Path, model: str, known: Mapping[str, Kinds]) -> Arguments:
    """Return the arguments in a file. Places that exist beside it become absolute paths.

    model   name of the model, for errors
    known   names that vLLM knows, with the types of their values
    Without the argument `model`, it is the folder of the file, if that has a config.json.
    Raises CoreError that names the file, the key, what was found and what was expected.
    """
    if not file.is_file():
        raise not_found(file, model)
    check_readable(file, model)
    found = read_object(file, model)
    for name, value in found.items():
        if name not in known:
            hint = nearest(name, known) or ", which vLLM's engine does not have"
            raise _wrong(file, model, f"has the unknown key '{name}'{hint}")
        found[name] = _checked(file, model, name, value, known[name])
        if name in _REFUSED and found[name]:
            raise _wrong(file, model, f"has '{name}', which must be absent: {_REFUSED[name]}")
    _add_places(file, model, found)
    return found


def read_object(file: Path, model: str) -> dict[str, Any]:
    """Return the object in a JSON file. Raises CoreError(INVALID) for other content."""
    try:
        found = json.loads(file.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise _wrong(file, model, f"is no JSON: {error}") from None
    if type(found) is not dict:
        raise _wrong(file, model, f"has {_WORDS[type(found)]}, it must have an object")
    return found


def _wrong(file: Path, model: str, problem: str) -> CoreError:
    return invalid(f"model '{model}': '{file}' {problem}")


def nearest(name: str, known: Mapping[str, Kinds]) -> str:
    """Return a hint to the name that is most like an unknown one, for an error; "" if none is."""
    words = name.lower().lstrip("-").replace("-", "_")  # as on the command line of `vllm serve`
    near = [words] if words in known else difflib.get_close_matches(words, known, 1)
    return f"; did you mean '{near[0]}'?" if near else ""


def _checked(file: Path, model: str, name: str, value: Any, kinds: Kinds) -> Any:
    """Return a value of a type that the argument takes.

    kinds   these types; () if only vLLM knows them
    A text is read as JSON unless the argument takes texts.
    Raises CoreError(INVALID) for a value of a wrong type.
    """
    if not kinds or value is None:
        return value
    found = value
    if type(value) is str and str not in kinds:
        with contextlib.suppress(ValueError, RecursionError):
            found = json.loads(value.lower() if bool in kinds else value)
    if type(found) not in kinds:
        words = [_WORDS[each] for each in kinds if each is not int or float not in kinds]
        shown = json.dumps(value, ensure_ascii=False)[:80]
        raise _wrong(file, model, f"has {shown} as '{name}', it must be {' or '.join(words)}")
    return found


def _add_places(file: Path, model: str, found: Arguments) -> None:
    """Make the places absolute that exist beside the file, and add the argument `model` if it is missing."""
    folder = file.parent
    if "model" not in found:
        if not (folder / CONFIG).is_file():
            raise _wrong(
                file,
                model,
                "has no key 'model', it must name a folder beside it, an absolute path, or a model at "
                "Hugging Face; without it, the weights must be in the same folder, which has no config.json",
            )
        found["model"] = str(folder)
    for name in _PLACES:
        if type(value := found.get(name)) is str:
            found[name] = _place(file, model, name, value)
    speculative = found.get("speculative_config")
    if type(speculative) is dict and type(value := speculative.get("model")) is str:
        place = _place(file, model, "speculative_config.model", value)
        found["speculative_config"] = {**speculative, "model": place}


def _place(file: Path, model: str, name: str, value: str) -> str:
    """Return the absolute path of a place that exists beside the file; else the value.

    Raises CoreError(INVALID) for a value that can only be a path, and is not there.
    """
    path = file.parent / value
    if value and path.exists():
        return str(path.resolve())
    if not value or Path(value).is_absolute() or value.startswith((".", "~")):
        raise _wrong(
            file,
            model,
            f"has '{value}' as '{name}', and there is no '{path}'; it must be a folder beside {file.name}, "
            "an absolute path, or a model at Hugging Face such as 'owner/name'",
        )
    return value
