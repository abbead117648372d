"""Input data in the forms of other distributions, such as captured requests.

A distribution names a function in an entry point of the group core.bench_data:

    read(path: str, model: str, rows: bool) -> list[list[dict[str, tuple[str, tuple[int, ...], bytes]]]]

It returns streams of steps, each step input → (datatype, shape, data in the binary form of the v2 protocol);
None for a path of another form. With `rows`, each row of a request is a step, whose shapes have no batch
dimension. It raises CoreError. A function of the group core.bench_arrivals says when the requests came:

    intervals(path: str, model: str) -> list[int] | None

It returns the nanoseconds between each request and the next one, in the order of their beginnings; None for
a path of another form.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import entry_points

from core.errors import invalid
from core_bench.data.json_file import Step
from core_bench.data.shapes import check_dims
from core_bench.data.tensors import Value
from core_bench.model.description import ModelInfo

GROUP = "core.bench_data"
ARRIVALS = "core.bench_arrivals"


def read_other(path: str, info: ModelInfo, whole: bool = False) -> list[list[Step]] | None:
    """Return the steps of each stream in a path that a reader knows; None if none does.

    whole   requests keep their rows; else each row is a step, for models with a batch dimension
    Raises CoreError for data that do not fit the model.
    """
    rows = bool(info.max_batch_size)
    for entry in entry_points(group=GROUP):
        streams = entry.load()(path, info.name, rows and not whole)
        if streams is not None:
            first = 1 if rows and whole else 0
            return [[_checked(step, path, info, first) for step in stream] for stream in streams]
    return None


def intervals_of(paths: Sequence[str], model: str) -> tuple[int, ...]:
    """Return the nanoseconds between the recorded requests in all paths; () if none has times."""
    found: list[int] = []
    for path in paths:
        for entry in entry_points(group=ARRIVALS):
            if (intervals := entry.load()(path, model)) is not None:
                found += intervals
                break
    return tuple(found)


def _checked(
    step: dict[str, tuple[str, tuple[int, ...], bytes]], path: str, info: ModelInfo, first: int
) -> Step:
    """Return a step whose dimensions from the number `first` on fit the model."""
    known = {each.name: each for each in info.inputs}
    if unknown := step.keys() - known.keys():
        raise invalid(
            f"'{path}' has an input '{min(unknown)}' that model '{info.name}' does not have"
        )
    missing = [each.name for each in info.inputs if not each.optional and each.name not in step]
    if missing:
        raise invalid(f"a request in '{path}' has no input '{missing[0]}'")
    for name, (datatype, shape, _) in step.items():
        if datatype != known[name].datatype:
            raise invalid(
                f"input '{name}' in '{path}' is {datatype}, but that of the model {known[name].datatype}"
            )
        check_dims(
            known[name], shape[first:], f"the shape {list(shape)} of input '{name}' in '{path}'"
        )
    return {name: Value(*each) for name, each in step.items()}
