"""The inputs and outputs of a model, and the check of a configuration that names them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from backend_video.pictures import NV12
from core import dtypes
from core.config import ModelConfig
from core.errors import invalid

URL, FILE = "url", "file"
FRAME, PTS, INDEX, GAP, DROPPED, NOTICE = "frame", "pts", "index", "gap", "dropped", "notice"

Kind = tuple[Any, tuple[int, ...]]

INPUTS: dict[str, Kind] = {URL: (dtypes.BYTES, (1,)), FILE: (dtypes.BYTES, (1,))}


def outputs_of(format: str) -> dict[str, Kind]:
    """Return datatype and dims of each output, for frames of a format."""
    return {
        FRAME: (dtypes.UINT8, (-1, -1) if format == NV12 else (-1, -1, 3)),
        PTS: (dtypes.INT64, (1,)),
        INDEX: (dtypes.INT64, (1,)),
        GAP: (dtypes.INT64, (1,)),
        DROPPED: (dtypes.INT64, (1,)),
        NOTICE: (dtypes.BYTES, (1,)),
    }


def check(config: ModelConfig, format: str) -> None:
    """Raise CoreError(INVALID) if a configuration does not describe a model of this backend."""
    if config.max_batch_size:
        raise invalid(
            f"model '{config.name}' has max_batch_size {config.max_batch_size}; each request has a stream "
            "of its own, so it must be 0"
        )
    if not config.model_transaction_policy.decoupled:
        raise invalid(
            f"model '{config.name}' is not decoupled; a stream has many answers: set "
            "model_transaction_policy { decoupled: true }"
        )
    inputs: list[Any] = list(config.input)
    outputs: list[Any] = list(config.output)
    for what, entries, known in (
        ("input", inputs, INPUTS),
        ("output", outputs, outputs_of(format)),
    ):
        for entry in entries:
            _check(config.name, what, entry, known)


def _check(model: str, what: str, entry: Any, known: Mapping[str, Kind]) -> None:
    if entry.name not in known:
        raise invalid(
            f"model '{model}' has an {what} '{entry.name}'; the {what}s of a video are {', '.join(known)}"
        )
    dtype, dims = known[entry.name]
    if entry.data_type != dtype.number or not _fits(tuple(entry.dims), dims):
        found = dtypes.BY_NUMBER[entry.data_type].config_name
        raise invalid(
            f"model '{model}': {what} '{entry.name}' is {found} {list(entry.dims)}, it must be "
            f"{dtype.config_name} {list(dims)}"
        )


def _fits(dims: tuple[int, ...], known: tuple[int, ...]) -> bool:
    return len(dims) == len(known) and all(
        have == want or (want == -1 and have > 0) for have, want in zip(dims, known, strict=True)
    )
