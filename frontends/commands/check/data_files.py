"""Check the files that a configuration names: labels, initial states and warm-up samples."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from core import dtypes
from core.config import ModelConfig
from core.config.messages import ModelInput, ModelWarmup
from core.config.states import FOLDER as STATES
from core.pipeline.warmup import FOLDER as WARMUP
from frontends.commands.check.finding import Edit, Finding
from frontends.commands.check.mending import replace_value
from frontends.commands.check.parsing import certain
from frontends.commands.check.places.paths import entry_at
from frontends.commands.check.settings import Place
from frontends.commands.check.tree_of_files import read_text, regular_size

_MOST_LABEL_BYTES = 16 << 20
_MOST_SAMPLE_BYTES = 16 << 30


def check_data_files(config: ModelConfig, place: Place, whole: bool) -> None:
    """Report missing, misplaced and wrong files of a valid configuration.

    whole   whether the configuration is complete; otherwise samples for the warm-up are not checked
    """
    for found in (*_labels(config, place), *_states(config, place)):
        place.report.add(found)
    for found in _warmup(config, place) if whole else ():
        place.report.add(found)


def _labels(config: ModelConfig, place: Place) -> Iterator[Finding]:
    for index, output in enumerate(config.output):
        if not (name := output.label_filename):
            continue
        path, where = place.report.folder / name, f"output[{index}].label_filename"
        what = f"the label file '{name}' of output '{output.name}'"
        if (problem := _outside(path, place.report.folder)) is not None:
            yield place.finding("error", "labels", f"{what} {problem}", where)
        elif regular_size(path) is None:
            edit = _near_file(path, place, where)
            yield place.finding("error", "labels", f"{what} {_absent(path)}", where, edit)
        else:
            yield from _label_lines(path, what, list(output.dims), place, where)


def _label_lines(
    path: Path, what: str, dims: list[int], place: Place, where: str
) -> Iterator[Finding]:
    try:
        text = read_text(path, _MOST_LABEL_BYTES)
    except ValueError as error:
        yield place.finding("error", "labels", f"{what}: {error}", where)
        return
    lines = text.removesuffix("\n").split("\n") if text else []
    size = math.prod(dims)
    if not dims or any(dim < 0 for dim in dims):
        return
    both = f"{what} has {len(lines)} lines, and the output has {size} values (dims {dims})"
    if len(lines) < size:
        text = f"{both}: the last classes have no label"
        yield place.finding("warning", "labels", text, where)
    elif len(lines) > size > 1:
        text = f"{both}: the last labels belong to no class"
        yield place.finding("warning", "labels", text, where)


def _states(config: ModelConfig, place: Place) -> Iterator[Finding]:
    for index, state in enumerate(config.sequence_batching.state):
        if not state.initial_state or state.data_type not in dtypes.BY_NUMBER:
            continue
        initial = state.initial_state[0]
        where = f"sequence_batching.state[{index}].initial_state[0]"
        dtype = dtypes.BY_NUMBER[state.data_type]
        rows = [1, *initial.dims] if config.max_batch_size else list(initial.dims)
        size = math.prod(rows) * (dtype.byte_size or 0)
        if initial.data_file:
            what = f"the initial state '{initial.data_file}' of '{state.input_name}'"
            path = place.report.folder / STATES / initial.data_file
            exact = dtype is not dtypes.BYTES
            yield from _data(path, STATES, what, size, exact, place, f"{where}.data_file")
        elif size > _MOST_SAMPLE_BYTES:
            text = f"the initial state of '{state.input_name}' has {size} bytes"
            yield place.finding("warning", "limit", text, where)


def _warmup(config: ModelConfig, place: Place) -> Iterator[Finding]:
    known = {io.name: io for io in config.input}
    sequence = config.sequence_batching
    of_server = {each.name for each in sequence.control_input}
    of_server |= {each.input_name for each in sequence.state}
    for index, sample in enumerate(config.model_warmup):
        if not sample.batch_size:
            continue
        where = f"model_warmup[{index}]"
        what = f"warm-up sample '{sample.name}'"
        for name in sorted(sample.inputs):
            given, at = sample.inputs[name], f"{where}.inputs['{name}']"
            if name not in known and name not in of_server:
                near = certain(name, known)
                meant = f"; did you mean '{near}'?" if near else ""
                text = f"{what} has the input '{name}', which the model does not have{meant}"
                yield place.finding("error", "data", text, at, _key(place, at, near))
                continue
            dtype = dtypes.BY_NUMBER[given.data_type]
            if name in known:
                yield from _fit(known[name], given, f"{what}, input '{name}'", place, at)
            rows = [1, *given.dims] if config.max_batch_size else list(given.dims)
            size = math.prod(rows) * (0 if dtype is dtypes.BYTES else dtype.byte_size or 0)
            if given.input_data_file:
                label = f"the data file '{given.input_data_file}' of {what}, input '{name}',"
                path = place.report.folder / WARMUP / given.input_data_file
                exact = dtype is not dtypes.BYTES
                yield from _data(path, WARMUP, label, size, exact, place, at)
            elif size * sample.batch_size > _MOST_SAMPLE_BYTES:
                yield place.finding("warning", "limit", f"{what} has {size} bytes a row", at)
        missing = [n for n, io in known.items() if n not in sample.inputs and not io.optional]
        if missing:
            text = f"{what} lacks the input{'s' if len(missing) > 1 else ''} {', '.join(missing)}"
            yield place.finding("error", "data", text, where)


def _fit(
    io: ModelInput, given: ModelWarmup.Input, what: str, place: Place, where: str
) -> Iterator[Finding]:
    """Yield errors for a datatype and for dims of a sample that its input does not take."""
    expected, found = dtypes.BY_NUMBER[io.data_type], dtypes.BY_NUMBER[given.data_type]
    if expected is not found:
        edit = None
        entry, there = entry_at(place.tree, where)
        if there and entry is not None:
            values = next((e.fields for e in entry.fields or () if e.name == "value"), None) or []
            typed = next((each for each in values if each.name == "data_type"), None)
            edit = replace_value(typed, expected.config_name) if typed else None
        text = f"{what} is {found.config_name}, the model takes {expected.config_name}"
        yield place.finding("error", "data", text, where, edit)
    dims, wanted = list(given.dims), list(io.dims)
    if len(dims) != len(wanted) or any(b not in (-1, a) for a, b in zip(dims, wanted, strict=True)):
        text = f"{what} has dims {dims}, the model takes {wanted}"
        yield place.finding("error", "data", text, where)


def _data(
    path: Path, folder: str, what: str, size: int, exact: bool, place: Place, where: str
) -> Iterator[Finding]:
    """Yield an error if a data file is missing, outside of its folder, or of the wrong size.

    exact   whether more bytes than `size` are wrong, too
    """
    if (problem := _outside(path, place.report.folder / folder)) is not None:
        yield place.finding("error", "data", f"{what} {problem}", where)
    elif (found := regular_size(path)) is None:
        yield place.finding("error", "data", f"{what} {_absent(path)}", where)
    elif found < size or (exact and found != size):
        text = f"{what} has {found} bytes, its dims and datatype need {size}"
        yield place.finding("error", "data", text, where)


def _outside(path: Path, folder: Path) -> str | None:
    try:
        inside = path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError):
        return "cannot be reached"
    return None if inside else f"is outside of the folder '{folder.name}'"


def _absent(path: Path) -> str:
    if path.exists():
        return "is no regular file"
    there = _names(path.parent)
    return f"is missing; its folder has {', '.join(there) or 'nothing'}"


def _names(folder: Path) -> list[str]:
    try:
        names = sorted(each.name for each in folder.iterdir() if each.is_file())
    except OSError:
        return []
    return names if len(names) <= 20 else [*names[:20], "…"]


def _near_file(path: Path, place: Place, where: str) -> Edit | None:
    near = certain(path.name, [each for each in _names(path.parent) if each != "config.pbtxt"])
    entry, there = entry_at(place.tree, where)
    if not near or not there or entry is None:
        return None
    return replace_value(entry, f'"{(Path(entry.string).parent / near).as_posix()}"')


def _key(place: Place, where: str, near: str) -> Edit | None:
    entry, there = entry_at(place.tree, where)
    if not near or not there or entry is None:
        return None
    key = next((each for each in entry.fields or () if each.name == "key"), None)
    return replace_value(key, f'"{near}"') if key else None
