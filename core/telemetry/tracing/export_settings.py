"""ExportSettings: where spans are sent, as what, and how many at once.

    --trace-config=opentelemetry,<setting>=<value>

Plain values and their checks. Names and defaults are those of Triton, and so are the environment variables
that say what the command line does not.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from core.errors import invalid

_SERVICE = {"service.name": "triton-inference-server"}
_NUMBERS = {
    "bsp_max_queue_size": 2048,
    "bsp_schedule_delay": 5000,
    "bsp_max_export_batch_size": 512,
}
_LARGEST = 2**32 - 1


@dataclass(frozen=True)
class ExportSettings:
    """Settings of mode opentelemetry.

    url          of the collector, "" for that of the environment or of OpenTelemetry
    resource     attributes of what sends the spans
    queue_size   spans that wait at most; more are dropped
    delay_ms     from one sending to the next
    batch_size   spans that are sent at once, at most
    shown        what the trace extension tells of them, by name
    unknown      names that are no setting
    """

    url: str = ""
    resource: dict[str, str] = field(default_factory=lambda: dict(_SERVICE))
    queue_size: int = _NUMBERS["bsp_max_queue_size"]
    delay_ms: int = _NUMBERS["bsp_schedule_delay"]
    batch_size: int = _NUMBERS["bsp_max_export_batch_size"]
    shown: dict[str, str] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, given: Sequence[tuple[str, str]], environment: Mapping[str, str] = os.environ
    ) -> ExportSettings:
        """Those of the command line; the last of several holds, but for resources, which add up.

        Raises CoreError(INVALID) for a value that cannot be.
        """
        url, resource = "", dict(_SERVICE)
        shown: dict[str, str] = {}
        numbers: dict[str, int] = {}
        unknown = []
        for key, value in given:
            if key == "url":
                url = value if "://" in value else f"http://{value}"
                shown[key] = value
            elif key == "resource":
                name, equals, text = value.partition("=")
                if not equals or not name:
                    raise invalid(
                        "--trace-config=opentelemetry,resource: expected <key>=<value>, such as "
                        f"service.name=models, found '{value}'"
                    )
                resource[name] = text
                shown[key] = f"{shown[key]},{value}" if key in shown else value
            elif key in _NUMBERS:
                numbers[key] = _number(f"--trace-config=opentelemetry,{key}", value)
            else:
                unknown.append(key)
        for key, usual in _NUMBERS.items():
            if key not in numbers:
                variable = f"OTEL_{key.upper()}"
                numbers[key] = _number(variable, environment.get(variable) or str(usual))
            shown[key] = str(numbers[key])
        queue_size, delay_ms, batch_size = (numbers[key] for key in _NUMBERS)
        return cls(
            url, resource, queue_size, delay_ms, min(batch_size, queue_size), shown, tuple(unknown)
        )


def _number(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit()) or not 0 < (number := int(text)) <= _LARGEST:
        raise invalid(f"{name}: expected a whole number from 1 to {_LARGEST}, found '{text[:40]}'")
    return number
