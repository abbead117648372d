"""Target: the interface of both; and the signature of a model from its configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from core import dtypes
from core.config import InputSpec, OutputSpec, Signature
from core_jobs.offline.item import Request, Responses


class Target(Protocol):
    """A server with the model of a run. Use it on one event loop."""

    async def open(self) -> Signature:
        """Connect; return the inputs and outputs of the model. Raises CoreError if it does not serve."""

    async def ask(self, request: Request) -> Responses:
        """Return the responses to a request. Raises CoreError; UNAVAILABLE if it was not executed."""

    async def close(self) -> None:
        """Release everything. Also after an `open` that has failed."""


def signature_of(config: Mapping[str, Any], version: int) -> Signature:
    """Return the signature of a configuration in the JSON form of the protocol."""
    inputs = {
        each["name"]: InputSpec(
            each["name"],
            dtypes.BY_CONFIG_NAME[each["data_type"]],
            _dims(each),
            optional=bool(each.get("optional")),
            shape_tensor=bool(each.get("is_shape_tensor")),
        )
        for each in config.get("input", ())
    }
    outputs = {
        each["name"]: OutputSpec(
            each["name"], dtypes.BY_CONFIG_NAME[each["data_type"]], _dims(each)
        )
        for each in config.get("output", ())
    }
    policy = config.get("model_transaction_policy") or {}
    return Signature(
        config["name"],
        version,
        inputs,
        outputs,
        int(config.get("max_batch_size", 0)),
        bool(policy.get("decoupled")),
    )


def _dims(tensor: Mapping[str, Any]) -> tuple[int, ...]:
    return tuple(int(each) for each in tensor.get("dims", ()))
