"""Check one version of a model: complete its configuration without loading, and compare it with the file.

The backend does both in a function of the entry points `core.checks`: name of the backend → function.

    check(config, path, backend) -> bool

    config    filled in, not completed. The function completes it in place, like Backend.complete
    path      folder of the version
    backend   the installed Backend
    It raises the CoreError and logs the warnings of a load as far as it can know them without loading the
    model and without running code of it. It returns whether the configuration is complete: False if only
    a load can complete it.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

from core import plugins
from core.backend import Backend
from core.config import ModelConfig
from core.config.messages import DataType
from core.errors import CoreError, described
from frontends.commands.check.finding import Edit
from frontends.commands.check.mending import replace_list, replace_value
from frontends.commands.check.parsing import certain
from frontends.commands.check.places.paths import entry_at, place_in
from frontends.commands.check.places.tree import Tree
from frontends.commands.check.settings import Place, one_line

CHECKS = "core.checks"

CheckVersion = Callable[[ModelConfig, Path, Backend], bool]

_MOST_ERRORS = 20  # of one version


def check_of(backend: Backend, name: str) -> CheckVersion | None:
    """Return the function that checks models of a backend; None if it has none.

    Raises CoreError if its module cannot be imported.
    """
    there = plugins.installed(CHECKS)
    for each in (name, backend.name, getattr(backend, "based_on", ""), *plugins.aliases(name)):
        if each in there:
            found: CheckVersion = there[each].load()
            return found
    return None


def completed(
    config: ModelConfig, path: Path, backend: Backend, check: CheckVersion, place: Place
) -> bool:
    """Complete the configuration in place, and report what contradicts the file.

    An error that the file leaves one answer to is mended in `config`, so that the next one is found.
    Returns whether the configuration is complete: False also after an error that is not mended.
    """
    facts: ModelConfig | None = None
    for _ in range(_MOST_ERRORS):
        trial = deepcopy(config)
        try:
            whole = check(trial, path, backend)
        except CoreError as error:
            if facts is None:
                facts = _facts(config, path, backend, check)
            where = place_in(error.message, config)
            edit, changed = _mended(config, facts, where, place.tree)
            place.report.add(place.error(error, "file", edit))
            if not changed:
                return False
        except Exception as error:  # a fault of the backend's check must not end that of the others
            text = f"backend '{backend.name}' cannot check the file: {one_line(described(error))}"
            place.report.add(place.finding("warning", "unchecked", text))
            return False
        else:
            config.CopyFrom(trial)
            return whole
    return False


def _facts(config: ModelConfig, path: Path, backend: Backend, check: CheckVersion) -> ModelConfig:
    """Return the configuration that the file alone gives; one without tensors if the check fails on it."""
    facts = deepcopy(config)
    facts.ClearField("input")
    facts.ClearField("output")
    try:
        check(facts, path, backend)
    except Exception:  # the check of the whole configuration reports it
        facts.ClearField("input")
        facts.ClearField("output")
    return facts


def _mended(
    config: ModelConfig, facts: ModelConfig, where: str, tree: Tree
) -> tuple[Edit | None, bool]:
    """Change the field at the path `where` in `config` to what the model's file says.

    facts   the configuration that the file gives
    Only the name, data_type or dims of an input or output is changed. Return (edit, whether `config` is
    changed). The edit is None if it is not, and if it is but the text of config.pbtxt has no place for it.
    """
    kind, _, rest = where.partition("[")
    if kind not in ("input", "output") or not rest:
        return None, False
    number, _, field = rest.partition("].")
    index = int(number)
    entries, known = getattr(config, kind), {io.name: io for io in getattr(facts, kind)}
    if index >= len(entries):
        return None, False
    io, (entry, _) = entries[index], entry_at(tree, f"{kind}[{index}]")
    if field.startswith("name"):
        return _renamed(io, entry, certain(io.name, known.keys() - {each.name for each in entries}))
    if (right := known.get(io.name)) is None:
        return None, False
    if field.startswith("data_type") and io.data_type != right.data_type:
        io.data_type = right.data_type
        at, there = entry_at(tree, f"{kind}[{index}].data_type")
        name = DataType.Name(right.data_type)
        return (replace_value(at, name) if there and at else None), True
    if (
        field.startswith("dims")
        and list(io.dims) != list(right.dims)
        and not io.HasField("reshape")
    ):
        if right.HasField("reshape"):
            return None, False
        io.ClearField("dims")
        io.dims.extend(right.dims)
        return (replace_list(tree, entry, "dims", right.dims) if entry else None), True
    return None, False


def _renamed(io: Any, entry: Any, name: str) -> tuple[Edit | None, bool]:
    if not name or entry is None:
        return None, False
    io.name = name
    value = next((each for each in entry.fields or () if each.name == "name"), None)
    return (replace_value(value, f'"{name}"') if value else None), True
