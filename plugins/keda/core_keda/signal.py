"""The value of a trigger's signal, from the metrics of the server."""

from __future__ import annotations

from core.errors import not_found
from core.telemetry.families import Family, Sample
from core_keda.looks import Families
from core_keda.trigger import SIGNALS, Trigger

_READY = "core_model_ready"


def value_of(trigger: Trigger, families: Families) -> float:
    """Return the value of the signal: of the model, or of all models.

    Seconds of waiting are the longest of all versions, since instances of one model do not help another.
    Counts of requests are added up. A server without models has 0. Raises CoreError(NOT_FOUND) if no such
    model is loaded, or was ever.
    """
    values = [
        sample.value
        for sample in _samples(families.get(SIGNALS[trigger.signal]))
        if trigger.model in ("", sample.labels.get("model"))
    ]
    if not values and trigger.model:
        known = {sample.labels.get("model") for sample in _samples(families.get(_READY))}
        if trigger.model not in known:
            raise not_found(
                f"the server knows no model '{trigger.model}', so it has no {trigger.signal} of it"
            )
    return max(values, default=0.0) if trigger.signal == "wait_seconds" else sum(values)


def _samples(family: Family | None) -> list[Sample]:
    return [] if family is None else list(family.samples)
