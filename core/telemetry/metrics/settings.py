"""The settings of --metrics-config: which latencies are exposed, and in which form.

Invalid settings have no effect, as in Triton; unlike Triton, the server logs a warning.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

QUANTILES = (0.5, 0.9, 0.95, 0.99, 0.999)

_SWITCHES = {  # setting → field of MetricSettings
    "counter_latencies": "counters",
    "histogram_latencies": "histograms",
    "summary_latencies": "summaries",
}
_KEYS = (*_SWITCHES, "summary_quantiles")


@dataclass(frozen=True)
class MetricSettings:
    """The valid settings of --metrics-config.

    counters, histograms, summaries   whether latencies are exposed in this form
    quantiles                         of summaries, in the order of the option
    complaints                        one log line for each setting without effect
    """

    counters: bool = True
    histograms: bool = False
    summaries: bool = False
    quantiles: tuple[float, ...] = QUANTILES
    complaints: tuple[str, ...] = field(default=(), compare=False)

    @classmethod
    def of(cls, config: Mapping[str, str]) -> MetricSettings:
        """Return the settings in `config`, name → text; invalid ones become texts in `complaints`."""
        complaints = [
            f"--metrics-config={key} has no effect: there is no such setting"
            for key in sorted(set(config) - set(_KEYS))
        ]
        switches: dict[str, bool] = {}
        for key, name in _SWITCHES.items():
            text = config.get(key, "").strip().lower()
            if text in ("true", "false"):
                switches[name] = text == "true"
            elif key in config:
                complaints.append(
                    f"--metrics-config={key}={config[key]} has no effect: expected true or false"
                )
        quantiles = _quantiles(config.get("summary_quantiles", ""), complaints)
        return cls(**switches, quantiles=quantiles or QUANTILES, complaints=tuple(complaints))


def _quantiles(text: str, complaints: list[str]) -> tuple[float, ...]:
    """Return the quantiles (first numbers) of `0.5:0.05,0.9:0.01`; add a complaint for each invalid pair."""
    found: list[float] = []
    for pair in filter(None, text.split(",")):
        quantile, colon, error = pair.partition(":")
        try:
            number, tolerance = float(quantile), float(error)
        except ValueError:
            number = tolerance = math.nan
        if not colon or not 0 <= number <= 1 or not 0 <= tolerance <= 1:
            complaints.append(
                f"'{pair}' of --metrics-config=summary_quantiles has no effect: "
                "expected <quantile>:<error>, both between 0 and 1"
            )
        elif number not in found:
            found.append(number)
    return tuple(found)
