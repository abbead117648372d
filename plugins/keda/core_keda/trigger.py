"""Trigger: the metadata of a KEDA trigger, read and checked.

ScaledObjectRef.scalerMetadata ─► [Trigger.of] ─► signal.py reads the value that it names
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from core.errors import invalid
from core.similar import did_you_mean

SIGNALS = {
    "wait_seconds": "core_inference_wait_estimate_seconds",
    "pending": "nv_inference_pending_request_count",
    "in_flight": "core_inference_in_flight",
}
"""Name in a trigger → name of the metric."""

_MEMBERS = ("model", "signal", "target", "activation")


@dataclass(frozen=True)
class Trigger:
    """What a trigger asks for.

    model        name of a model; "" for all models
    signal       key of SIGNALS
    target       value of one server at which KEDA keeps the number of servers
    activation   value above which the trigger is active
    """

    model: str = ""
    signal: str = "wait_seconds"
    target: float = 0.1
    activation: float = 0.0

    @property
    def metric_name(self) -> str:
        """The name of the metric in KEDA, such as "core-wait_seconds-digits"."""
        return "-".join(filter(None, ["core", self.signal, self.model]))

    @staticmethod
    def of(metadata: Mapping[str, str], name: str) -> Trigger:
        """Return the trigger with this metadata.

        name   of the ScaledObject, for errors
        Raises CoreError(INVALID) for a misspelt member, an unknown signal, or a number that is none.
        """
        where = f"the trigger of ScaledObject '{name}'"
        for key in metadata.keys() - set(_MEMBERS):
            # KEDA passes its own members on, such as scalerAddress: only misspelt ones are refused.
            if hint := did_you_mean(key, _MEMBERS):
                raise invalid(
                    f"{where} has metadata '{key}', which is unknown{hint}; known are {', '.join(_MEMBERS)}"
                )
        signal = metadata.get("signal", "wait_seconds")
        if signal not in SIGNALS:
            raise invalid(
                f"{where} has signal '{signal}', which is unknown{did_you_mean(signal, SIGNALS)}; known are "
                f"{', '.join(SIGNALS)}"
            )
        if "target" not in metadata and signal != "wait_seconds":
            raise invalid(
                f"{where} needs 'target': the number of requests at which one server should be kept"
            )
        target = _number(metadata.get("target", "0.1"), "target", where)
        if target <= 0:
            raise invalid(f"{where} has target {target:g}, it must be above 0")
        activation = _number(metadata.get("activation", "0"), "activation", where)
        return Trigger(metadata.get("model", ""), signal, target, activation)


def _number(text: str, key: str, where: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not abs(found) < 1e15:  # also NaN
        raise invalid(f"{where} has {key} '{text}', which is no number; write one such as \"0.1\"")
    return found
