"""Paths of fields: "input[0].dims[1]" and "parameters['x']" ─► the entry of the tree.

[entry_at] follows a path as far as the text has it. [place_in] finds the path that an error text names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from core.config import ModelConfig
from frontends.commands.check.places.tree import FieldValue, Tree

_FIELDS = frozenset(ModelConfig.DESCRIPTOR.fields_by_name)
_STEP = re.compile(r"(\w+)(?:\[(\d+)\]|\['([^']*)'\]|\[([^\]]*)\])?(?: \('[^']*'\))?")
_PATH = re.compile(
    r"(?<![\w.'/])([a-z_]+(?:\[[^\]]*\])?(?: \('[^']*'\))?(?:\.[a-z_0-9]+(?:\[[^\]]*\])?(?: \('[^']*'\))?)*)"
)
_LONGEST_TEXT = 4000
_KEY = re.compile(r"([a-z_.]+) has the key '?([^';]*)'?")


def entry_at(tree: Tree, path: str) -> tuple[FieldValue | None, bool]:
    """Return the entry at a path, and whether the text has the whole path.

    If it has not, the entry is the innermost message of the path that the text has; None for the outermost.
    """
    fields, found = tree.fields, None
    for match in _STEP.finditer(path):
        name, index, key, other = match.groups()
        same = [each for each in fields if each.name == name]
        key = key if key is not None else other
        if key is not None:
            same = [each for each in same if _key_of(each) == key]
        at = int(index or 0)
        if at >= len(same):
            return found, False
        found = same[at]
        fields = _value_of(found) if key is not None else found.fields or []
    return found, found is not None


def _key_of(entry: FieldValue) -> str:
    return next((each.string for each in entry.fields or () if each.name == "key"), "")


def _value_of(entry: FieldValue) -> list[FieldValue]:
    values = [each for each in entry.fields or () if each.name == "value"]
    return (values[0].fields or values) if values else []


def place_in(text: str, config: ModelConfig) -> str:
    """Return the path of the field that an error text is about; "" if it names none."""
    text = text[:_LONGEST_TEXT]  # a file may choose it
    if match := _KEY.search(text):
        return f"{match[1]}['{match[2]}']"
    for match in _PATH.finditer(text):
        head = re.split(r"[\[. ]", match[1])[0]
        if head in _FIELDS and ("[" in match[1] or "." in match[1]):
            return match[1]
    if found := _parameter(text, config) or _tensor(text, config) or _step(text, config):
        return found
    for name in _WORDS:
        if re.search(rf"(?<![\w/]){name}(?![\w/])", text) and name in _FIELDS:
            return name
    return next((path for words, path in _TEXTS.items() if words in text.lower()), "")


_WORDS = (
    "max_batch_size",
    "default_model_filename",
    "version_policy",
    "response_cache",
    "instance_group",
    "dynamic_batching",
    "sequence_batching",
    "optimization",
    "model_warmup",
    "batch_input",
    "batch_output",
    "model_operations",
)
_TEXTS = {
    "response cache": "response_cache",
    "version policy": "version_policy",
    "instance group": "instance_group",
    "platform": "platform",
    "backend": "backend",
    "scheduling": "ensemble_scheduling",
}
_FIELDS_OF_TENSORS = (
    (
        ("datatype", "data_type", "data type", "must be type_", "is of type", "a number"),
        "data_type",
    ),
    (("optional input", "'optional'"), "optional"),
    (("allow_ragged", "ragged"), "allow_ragged_batch"),
    (("label file",), "label_filename"),
    (("shape", "dims", "dimension"), "dims"),
)


def _parameter(text: str, config: ModelConfig) -> str:
    for match in re.finditer(r"parameter '([^']*)'", text):
        if match[1] in config.parameters:
            return f"parameters['{match[1]}']"
    for name in config.parameters:
        if len(name) > 3 and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text):
            return f"parameters['{name}']"
    return ""


def _tensor(text: str, config: ModelConfig) -> str:
    """Return the path of the field that an error text is about; "" if it quotes no tensor of `config`.

    The field is of the input, output, state or control that the text quotes, such as "input[0].dims"; it is
    "max_batch_size" if the text says to set that to 0.
    """
    low = text.lower()
    rest = next(
        (name for words, name in _FIELDS_OF_TENSORS if any(w in low for w in words)), "name"
    )
    if rest == "dims" and "max_batch_size" in low and config.max_batch_size and "batching" in low:
        return (
            "max_batch_size" if "set max_batch_size: 0" in low else _of_tensor(text, config, rest)
        )
    return _of_tensor(text, config, rest)


def _of_tensor(text: str, config: ModelConfig, rest: str) -> str:
    if config.HasField("ensemble_scheduling") and " step " in text:
        return ""
    unknown = re.findall(r"has ([^',;]+), which the model does not have", text)
    for name in dict.fromkeys([*unknown, *re.findall(r"'([^']+)'", text)]):
        places: list[tuple[str, Iterable[str]]] = [
            ("input", (io.name for io in config.input)),
            ("output", (io.name for io in config.output)),
        ]
        if "output" in text.split(f"'{name}'")[0][-20:]:
            places.reverse()
        for kind, names in places:
            for index, each in enumerate(names):
                if each == name:
                    return f"{kind}[{index}].{rest}"
        for index, state in enumerate(config.sequence_batching.state):
            for end in ("input_name", "output_name"):
                if getattr(state, end) == name:
                    return f"sequence_batching.state[{index}].{end if rest == 'name' else rest}"
        for index, control in enumerate(config.sequence_batching.control_input):
            if control.name == name:
                return f"sequence_batching.control_input[{index}].name"
    return ""


def _step(text: str, config: ModelConfig) -> str:
    """Return the path of the field of an ensemble's step that an error text is about; "" if it names none."""
    steps = config.ensemble_scheduling.step
    if (match := re.search(r"step (\d+)", text)) and int(match[1]) < len(steps):
        path = f"ensemble_scheduling.step[{int(match[1])}]"
        for field in ("model_name", "input_map", "output_map", "model_version"):
            if field in text:
                return f"{path}.{field}"
        return _mapping(text, steps[int(match[1])], path)
    for match in re.finditer(r"'([^']+)'", text):
        for index, step in enumerate(steps):
            path = f"ensemble_scheduling.step[{index}]"
            for kind in ("output_map", "input_map"):
                for key, tensor in getattr(step, kind).items():
                    if tensor == match[1]:
                        return f"{path}.{kind}['{key}']"
            if step.model_name == match[1]:
                return f"{path}.model_name"
    return ""


def _mapping(text: str, step: object, path: str) -> str:
    for kind in ("input", "output"):
        if match := re.search(rf"no {kind} '([^']+)'", text):
            return f"{path}.{kind}_map['{match[1]}']"
    return f"{path}.model_name"
