"""ExportSettings: the settings of the span exporter, and their checks.

    --trace-config=opentelemetry,<setting>=<value>

Names, defaults and environment variables are those of Triton. A variable applies if the command line does not
set its value.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from core.errors import invalid

logger = logging.getLogger("core")

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

    url          URL of the collector; "": that of OpenTelemetry's environment variables, or its default
    resource     attributes of this server, which go with all spans
    queue_size   number of spans that wait at most; more are dropped
    delay_ms     milliseconds between two exports, unless a batch is full before
    batch_size   number of spans that one export has at most; not more than queue_size
    shown        the settings in the form of the trace extension, for clients
    """

    url: str = ""
    resource: dict[str, str] = field(default_factory=lambda: dict(_SERVICE))
    queue_size: int = _NUMBERS["bsp_max_queue_size"]
    delay_ms: int = _NUMBERS["bsp_schedule_delay"]
    batch_size: int = _NUMBERS["bsp_max_export_batch_size"]
    shown: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls, given: Sequence[tuple[str, str]], environment: Mapping[str, str] = os.environ
    ) -> ExportSettings:
        """Return the settings of the command line. The last value of a name applies; resources add up.

        A number that is not given is taken from its environment variable, or is the default. Logs a warning
        for an unknown name. Raises CoreError(INVALID) for an invalid value.
        """
        url, resource = "", dict(_SERVICE)
        shown: dict[str, str] = {}
        numbers: dict[str, int] = {}
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
                logger.warning(
                    "--trace-config=opentelemetry,%s has no effect: there is no such setting", key
                )
        for key, usual in _NUMBERS.items():
            if key not in numbers:
                variable = f"OTEL_{key.upper()}"
                numbers[key] = _number(variable, environment.get(variable) or str(usual))
            shown[key] = str(numbers[key])
        queue_size, delay_ms, batch_size = (numbers[key] for key in _NUMBERS)
        return cls(url, resource, queue_size, delay_ms, min(batch_size, queue_size), shown)


def _number(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit()) or not 0 < (number := int(text)) <= _LARGEST:
        raise invalid(f"{name}: expected a whole number from 1 to {_LARGEST}, found '{text[:40]}'")
    return number
