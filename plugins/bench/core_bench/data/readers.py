"""Input data in the forms of other distributions, such as captured requests.

A distribution names a function in an entry point of the group core.bench_data:

    read(path: str, model: str, rows: bool) -> list[list[dict[str, tuple[str, tuple[int, ...], bytes]]]]

It returns streams of steps, each step input → (datatype, shape, data in the binary form of the v2 protocol);
None for a path of another form. With `rows`, shapes have no batch dimension. It raises CoreError.
"""

from __future__ import annotations

from importlib.metadata import entry_points

from core.errors import invalid
from core_bench.data.json_file import Step
from core_bench.data.shapes import check_dims
from core_bench.data.tensors import Value
from core_bench.model.description import ModelInfo

GROUP = "core.bench_data"


def read_other(path: str, info: ModelInfo) -> list[list[Step]] | None:
    """Return the steps of each stream in a path that a reader knows; None if none does.

    Raises CoreError for data that do not fit the model.
    """
    for entry in entry_points(group=GROUP):
        streams = entry.load()(path, info.name, bool(info.max_batch_size))
        if streams is not None:
            return [[_checked(step, path, info) for step in stream] for stream in streams]
    return None


def _checked(
    step: dict[str, tuple[str, tuple[int, ...], bytes]], path: str, info: ModelInfo
) -> Step:
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
        check_dims(known[name], shape, f"the shape {list(shape)} of input '{name}' in '{path}'")
    return {name: Value(*each) for name, each in step.items()}
