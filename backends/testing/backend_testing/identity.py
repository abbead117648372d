"""identity: any number of pairs INPUT<i>, OUTPUT<i> of any datatype and shape."""

from __future__ import annotations

import itertools
import time
from typing import Any

import core
from backend_testing import native
from backend_testing.configuration import NativeInstance, invalid, whole_number
from core import dtypes
from core.config import ModelConfig

Pair = tuple[str, str, int, list[int], bool]


class Identity(core.Model):
    """One model version of the backend identity. `load` checks its configuration.

    pairs   pairs of inputs and outputs, for native.Identity
    """

    def load(self) -> None:
        self.pairs = _pairs(self.config)
        self._numbers = itertools.count()
        time.sleep(whole_number(self, "creation_delay_sec"))

    def delay_ms(self) -> int:
        """Return the delay of each execution of the next instance, in milliseconds.

        It is the parameter execute_delay_ms times max(1, i * instance_wise_delay_multiplier), where i is the
        index of the instance, from 0: each call counts one instance.
        """
        number = next(self._numbers)
        multiplier = whole_number(self, "instance_wise_delay_multiplier") * number
        return whole_number(self, "execute_delay_ms") * max(multiplier, 1)


class IdentityInstance(NativeInstance):
    placement = "auto"
    model: Identity

    def open(self) -> None:
        delay_ms = self.model.delay_ms()
        if delay_ms:
            self.placement = "thread"
        version = str(self.model.version)
        self.run(native.Identity(self.model.name, version, self.model.pairs, delay_ms))


def _pairs(config: ModelConfig) -> list[Pair]:
    """Return a Pair for each INPUT<i>: its name, that of OUTPUT<i>, datatype, dims, whether it is ragged.

    A dim of -1 becomes 1. Raises CoreError(INVALID) for an input or output without a partner, for another
    name, or if the two differ in datatype or dims.
    """
    inputs = {_index(config, each.name, "INPUT"): each for each in config.input}
    outputs = {_index(config, each.name, "OUTPUT"): each for each in config.output}
    if inputs.keys() != outputs.keys():
        raise invalid(
            config,
            f"has inputs {sorted(inputs)} and outputs {sorted(outputs)}: each needs the other",
        )
    pairs = []
    for index, given in inputs.items():
        taken, has, gives = outputs[index], _seen(given), _seen(outputs[index])
        if has != gives:
            raise invalid(
                config, f"input '{given.name}' is {has}, its output '{taken.name}' is {gives}"
            )
        dims = [1 if dim == -1 else dim for dim in _dims(given)]
        number = int(given.data_type)
        pairs.append((given.name, taken.name, number, dims, given.allow_ragged_batch))
    return pairs


def _index(config: ModelConfig, name: str, word: str) -> str:
    if not name.startswith(word):
        raise invalid(config, f"has '{name}', the backend knows {word}<index>")
    return name.removeprefix(word)


def _seen(tensor: Any) -> str:
    return f"{dtypes.BY_NUMBER[tensor.data_type].name}{_dims(tensor)}"


def _dims(tensor: Any) -> list[int]:
    """Return the dims of a tensor after its reshape."""
    return list(tensor.reshape.shape if tensor.HasField("reshape") else tensor.dims)


identity = core.Backend(model=Identity, instance=IdentityInstance)
