"""Calls of a model to the server while it runs, initializes or finalizes: its own metrics.

model ─► api.Host.call ─► CALL ─► [Calls] ─► REPLY; without a child, directly to Calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from core.errors import CoreError, invalid, unsupported
from core.telemetry.registry import Metric, MetricFamily, registry

_OURS = "core_"  # prefix of the server's own metric families


class Calls:
    """The calls of one instance, and the metrics that they created, which end with the instance.

    Not thread-safe: use it from one thread at a time.
    """

    def __init__(self) -> None:
        self._numbers = 0
        self._families: dict[int, MetricFamily] = {}
        self._metrics: dict[int, tuple[int, Metric]] = {}  # with the number of its family
        self._operations: dict[str, Callable[..., Any]] = {
            "metric_family": self._metric_family,
            "metric": self._metric,
            "metric_operate": self._metric_operate,
        }

    def answer(self, operation: str, arguments: dict[str, Any]) -> Any:
        """Return the value of a call, which JSON can represent. Raise CoreError if the call is refused."""
        if (function := self._operations.get(operation)) is None:
            raise unsupported(f"'{operation}' is not available to Python models of this server")
        return function(**arguments)

    def drop(self, dropped: Iterable[tuple[str, int]]) -> None:
        """Remove families and metrics that the model has dropped. A family's metrics end with it.

        dropped   ("metric" or "metric_family", number) of each; unknown numbers are skipped
        """
        for what, number in dropped:
            if what == "metric" and (known := self._metrics.pop(number, None)) is not None:
                self._families[known[0]].remove(known[1])
            elif what == "metric_family":
                self._drop_family(number)

    def close(self) -> None:
        """Remove everything. Call when the instance is gone or its child has died."""
        for number in list(self._families):
            self._drop_family(number)

    def _drop_family(self, number: int) -> None:
        if (family := self._families.pop(number, None)) is None:
            return
        for each, (owner, metric) in list(self._metrics.items()):
            if owner == number:
                del self._metrics[each]
                family.remove(metric)
        registry.remove(family)

    def _metric_family(self, name: str, description: str, kind: Any, mode: str) -> int:
        if name.startswith(_OURS):
            raise invalid(f"'{name}' cannot be the name of a metric family of a model")
        return self._keep(self._families, registry.family(name, description, kind, mode))

    def _metric(self, family: int, labels: dict[str, str], buckets: list[float]) -> int:
        return self._keep(self._metrics, (family, self._families[family].metric(labels, buckets)))

    def _metric_operate(self, metric: int, operation: str, value: float) -> float:
        if metric not in self._metrics:
            raise unsupported(
                "Invalid metric operation as the corresponding 'MetricFamily' has been deleted. "
                "The 'MetricFamily' object should be deleted AFTER its corresponding 'Metric' "
                "objects have been deleted."
            )
        found = self._metrics[metric][1]
        if operation == "value":
            return found.value()
        if operation not in ("increment", "set", "observe"):
            raise unsupported(f"metrics do not support '{operation}'")
        getattr(found, operation)(value)
        return 0.0

    def _keep(self, kept: dict[int, Any], made: Any) -> int:
        self._numbers += 1
        kept[self._numbers] = made
        return self._numbers


def replied(calls: Calls, content: Any) -> dict[str, Any]:
    """Drop the objects that a CALL names, make the call, and return the content of its REPLY.

    content   of the CALL: [operation, arguments, dropped objects]
    An error of the call is in the result: {"error": text}.
    """
    operation, arguments, dropped = content
    calls.drop(dropped)
    try:
        return {"value": calls.answer(operation, arguments)}
    except CoreError as error:
        return {"error": error.message}
    except Exception as error:  # arguments of the wrong type: the model's mistake
        return {"error": f"{operation}: {type(error).__name__}: {error}"}
