"""The text that `core import` prints: what was written, what it needs, what was not taken."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement

from core.config.messages import DataType
from core_importers.draft import Draft

# Distributions with the same modules.
_SAME = {
    "mlflow": ("mlflow-skinny",),
    "onnxruntime": ("onnxruntime-gpu",),
    "opencv-python": ("opencv-python-headless",),
    "opencv-python-headless": ("opencv-python",),
    "xgboost": ("xgboost-cpu",),
}


def lines_of(draft: Draft, repository: Path) -> Iterator[str]:
    """Yield the lines that tell about a model that was written: tensors, needs, notes, the next command."""
    yield f"{draft.folder}: {draft.kind}"
    yield from _tensors("inputs ", draft.config.input)
    yield from _tensors("outputs", draft.config.output)
    own = "REQUIREMENTS" in draft.config.parameters
    for need in draft.needs:
        yield f"  needs    {need if own else described(need)}"
    if own:
        yield "  the server installs these for the model when it loads (parameter REQUIREMENTS)"
    yield from (f"  note     {note}" for note in draft.notes)
    yield f"next: core serve {repository}"


def _tensors(title: str, tensors: Any) -> Iterator[str]:
    if tensors:
        yield f"  {title}  " + ", ".join(_shown(each) for each in tensors)


def _shown(tensor: Any) -> str:
    datatype = DataType.Name(tensor.data_type).removeprefix("TYPE_")
    optional = " optional" if getattr(tensor, "optional", False) else ""
    return f"{tensor.name} {datatype}[{','.join(map(str, tensor.dims))}]{optional}"


def described(need: str) -> str:
    """Return a requirement with a note in parentheses: which version this Python has, or that it has none.

    A text that is no requirement is returned unchanged.
    """
    try:
        wanted = Requirement(need)
    except InvalidRequirement:
        return need
    if wanted.marker is not None and not wanted.marker.evaluate():
        return f"{need} (not for this Python)"
    there = next(
        filter(None, map(_version, (wanted.name, *_SAME.get(wanted.name.lower(), ())))), ""
    )
    if not there:
        return f"{need} (missing here: pip install '{need}')"
    if wanted.specifier.contains(there, prereleases=True):
        return f"{need} (here: {there})"
    return f"{need} (here: {there}, not what the source asks for)"


def _version(name: str) -> str:
    """Return the version of an installed distribution; "" without it."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""
