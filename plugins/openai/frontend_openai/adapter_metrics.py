"""AdapterMetrics: a gauge with the LoRA adapters of engines, as the inference gateways of Kubernetes read it.

The gateway compares its labels with the field `model` of a request. It reads the newest series.
"""

from __future__ import annotations

from collections.abc import Sequence

from core_generate.metrics import loaded_here

from core.telemetry.families import Family, Sample
from core.telemetry.metrics.catalog import VERSION, Entry
from core.telemetry.metrics.source import MetricSource

_ADAPTERS = Entry(
    "core_openai_lora_requests_info",
    "gauge",
    "LoRA adapters that serve, as in the field `model`, separated by commas; the value is the time of the "
    "load, in seconds since 1970",
    (*VERSION, "running_lora_adapters", "waiting_lora_adapters", "max_lora"),
    "engines with LoRA adapters",
    together="largest",
)


class AdapterMetrics(MetricSource):
    """The adapters of all loaded engines of the server on whose event loop `families` is called.

    An engine loads all adapters with its model: each serves at once, and none waits for a place.
    An adapter with a comma in its name is left out: a gateway would read two names.
    separator   as of --openai-lora-separator
    """

    catalog = {"Adapters (plugin `frontend-openai`)": [_ADAPTERS]}

    def __init__(self, separator: str):
        self._separator = separator

    def families(self) -> Sequence[Family]:
        samples = []
        for each in loaded_here():
            model = each.model
            adapters = model.description.adapters
            names = [f"{model.name}{self._separator}{adapter}" for adapter in adapters]
            names = [name for name in names if "," not in name]
            labels = {
                **each.labels,
                "running_lora_adapters": ",".join(names),
                "waiting_lora_adapters": "",
                "max_lora": str(len(names)),
            }
            if names:
                samples.append(Sample(labels, each.since_s))
        return [_ADAPTERS.family(samples)] if samples else []
