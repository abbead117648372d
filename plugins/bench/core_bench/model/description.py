"""ModelInfo: the inputs of a model, as metadata and configuration describe them."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.errors import CoreError, Kind, invalid


@dataclass(frozen=True)
class TensorInfo:
    """One input or output.

    dims   without the batch dimension; -1 is any size
    """

    name: str
    datatype: str
    dims: tuple[int, ...]
    optional: bool = False


@dataclass(frozen=True)
class ModelInfo:
    """What the load generator has to know of a model.

    max_batch_size   0 if requests have no batch dimension
    """

    name: str
    version: str
    inputs: Sequence[TensorInfo] = ()
    outputs: Sequence[TensorInfo] = ()
    max_batch_size: int = 0
    decoupled: bool = False
    sequences: bool = False

    def check_batch(self, rows: int) -> None:
        """Raise CoreError if a request cannot have so many rows."""
        if rows > 1 and not self.max_batch_size:
            raise invalid(
                f"model '{self.name}' takes no batches (max_batch_size is 0), but -b is {rows}; leave it out"
            )
        if self.max_batch_size and rows > self.max_batch_size:
            raise invalid(
                f"-b {rows} is above the max_batch_size of model '{self.name}', {self.max_batch_size}"
            )


def model_info(metadata: Mapping[str, Any], config: Mapping[str, Any] | None) -> ModelInfo:
    """Return the description of a model from its JSON; a server without configurations has `config` None."""
    config = config or {}
    batch = int(config.get("max_batch_size", 0))
    optional = {each["name"] for each in config.get("input", ()) if each.get("optional")}

    def tensors(key: str) -> list[TensorInfo]:
        return [
            TensorInfo(
                each["name"],
                each["datatype"],
                tuple(int(dim) for dim in each.get("shape", ()))[1 if batch else 0 :],
                each["name"] in optional,
            )
            for each in metadata.get(key, ())
        ]

    return ModelInfo(
        str(metadata["name"]),
        str((metadata.get("versions") or [""])[-1]),
        tensors("inputs"),
        tensors("outputs"),
        batch,
        bool(config.get("model_transaction_policy", {}).get("decoupled", False)),
        config.get("sequence_batching") is not None,
    )


def unknown_model(name: str, names: Sequence[str], where: str) -> CoreError:
    """Return the error for a model that a server does not have, with the nearest names."""
    near = difflib.get_close_matches(name, names, 3, 0.5)
    if near:
        hint = f"did you mean {' or '.join(repr(each) for each in near)}?"
    elif names:
        shown = ", ".join(sorted(names)[:20])
        hint = f"it has: {shown}{', …' if len(names) > 20 else ''}"
    else:
        hint = "it has no models"
    return CoreError(Kind.NOT_FOUND, f"the server {where} has no model '{name}'; {hint}")
