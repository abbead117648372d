"""ModelTraffic: the traffic of one model: settings, counters, sequences, and the front made of them.

settings, endpoints of the versions ─► [ModelTraffic] ─► Front
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from typing import Any, Literal

from core.config import ModelConfig
from core.governing import ModelEndpoint
from core_traffic.arm import Arm
from core_traffic.choice import Choice, Sequences
from core_traffic.copies import ShadowCounts
from core_traffic.front import Front, difference, front_endpoint
from core_traffic.objective import Objective, judged
from core_traffic.report import window_of
from core_traffic.settings import PARAMETER, Traffic
from core_traffic.shadow import Shadow

logger = logging.getLogger("core")

WINDOW_S = 10.0
MOST_ROLLBACKS = 20  # that are kept

Source = Literal["none", "configuration", "control", "rollback"]


class ModelTraffic:
    """The traffic of one model. Event loop only.

    name        key of the model
    executor    compares answers to copies
    sequence_idle_s   returns the longest pause in a sequence that the configuration allows now
    traffic     settings in force; None for none: the newest version answers
    source      where these come from
    changed     whether a control call or a rollback has changed them since the start of the process
    arms        version → counters, for each version that was ever in the traffic
    shadows     version → counters, for each version that ever got copies
    serving     versions that can answer
    rollbacks   the last ones, as JSON; all processes have the same
    rollback_counts   version → number of its rollbacks
    helpless    version that is bad, but without which no version with a weight would be ready; None for none
    """

    def __init__(
        self,
        name: str,
        loop: asyncio.AbstractEventLoop,
        executor: Executor,
        sequence_idle_s: Callable[[], float],
    ):
        self.name = name
        self.traffic: Traffic | None = None
        self.source: Source = "none"
        self.changed = False
        self.arms: dict[int, Arm] = {}
        self.shadows: dict[int, ShadowCounts] = {}
        self.serving: set[int] = set()
        self.rollbacks: deque[dict[str, Any]] = deque(maxlen=MOST_ROLLBACKS)
        self.rollback_counts: Counter[int] = Counter()
        self.helpless: int | None = None
        self._loop = loop
        self._executor = executor
        self._sequence_idle_s = sequence_idle_s
        self._shadow: Shadow | None = None
        self._endpoints: Mapping[int, ModelEndpoint] = {}
        self._text = ""  # parameter of the configuration
        self._of_configuration: Traffic | None = None
        self._sequences: Sequences | None = None
        self._choice: Choice | None = None
        self._absent: dict[int, str] = {}  # version of the settings → why it gets nothing

    def configure(self, config: ModelConfig) -> None:
        """Take the settings of the configuration, if these have changed since the last call.

        Settings of a control call stay in force as long as those of the configuration do not change.
        Raises CoreError(INVALID) for invalid settings.
        """
        text = parameter_of(config)
        if text != self._text:
            found = Traffic.parse(self.name, text) if text else None
            self._text, self._of_configuration = text, found
            self.reset()
        if not config.HasField("sequence_batching"):
            self._sequences = None
        elif self._sequences is None:
            self._sequences = Sequences(self._sequence_idle_s)

    def put(self, traffic: Traffic | None, source: Source) -> None:
        """Put settings in force; `renew` makes the front of them. Windows of an objective begin anew."""
        self.traffic, self.source = traffic, source
        self.helpless = None
        for arm in self.arms.values():
            self._judge(arm, anew=True)

    @property
    def objective(self) -> Objective | None:
        """What the versions must hold; None without it."""
        return None if self.traffic is None else self.traffic.rollback

    def _judge(self, arm: Arm, anew: bool) -> None:
        """Give an arm the window of the objective.

        anew   whether to forget what is in the window: it was before a change
        """
        objective = self.objective
        window_s = WINDOW_S if objective is None else objective.window_s
        slow_ms = 0.0 if objective is None else objective.p99_ms or 0.0
        arm.slow_ns = int(slow_ms * 1e6)
        if (anew and objective is not None) or arm.window_s != window_s:
            arm.begin_window(window_s)

    def reset(self) -> None:
        """Put the settings of the configuration in force."""
        self.put(self._of_configuration, "configuration" if self._of_configuration else "none")

    def front(self, endpoints: Mapping[int, ModelEndpoint]) -> ModelEndpoint | None:
        """Return the endpoint for requests without a version; None without settings.

        endpoints   of the versions that serve; not empty
        """
        traffic, self._choice = self.traffic, None
        if traffic is None:
            self._copy_to(None, {})
            return None
        fitting = self._fitting(traffic, endpoints)
        for number in {*fitting, *traffic.versions()}:
            if number not in self.arms:
                self.arms[number] = Arm(WINDOW_S)
            # A version that was loaded again is another one, even under the same number.
            loaded = self._endpoints.get(number) is not fitting.get(number)
            self._judge(self.arms[number], anew=loaded)
        self._endpoints = fitting
        self._copy_to(traffic, fitting)
        self._choice = Choice(traffic, fitting.keys() & traffic.versions(), self.name)
        front = Front(self.name, self._choice, fitting, self.arms, self._sequences, self._shadow)
        first = fitting[min(fitting)]
        return front_endpoint(front, first.signature, self._loop)

    def _copy_to(self, traffic: Traffic | None, endpoints: Mapping[int, ModelEndpoint]) -> None:
        """Copy requests as settings say. Cancel those in flight if that changes something."""
        settings = None if traffic is None else traffic.shadow
        endpoint = None if settings is None else endpoints.get(settings.version)
        known = self._shadow
        if known is not None and known.settings == settings and known.endpoint is endpoint:
            return
        if known is not None:
            known.close()
        self._shadow = None
        if settings is not None and endpoint is not None:
            counts = self.shadows.setdefault(settings.version, ShadowCounts())
            self._shadow = Shadow(self.name, settings, endpoint, counts, self._executor)

    def leaving(self, endpoint: ModelEndpoint) -> None:
        """Cancel the copies to a version that unloads: it would wait for them."""
        if self._shadow is not None and self._shadow.endpoint is endpoint:
            self._shadow.close()
            self._shadow = None

    def suspects(self) -> bool:
        """Return whether a version breaks the objective in this process."""
        if self.traffic is None or (objective := self.traffic.rollback) is None:
            return False
        return any(
            objective.broken(window_of([self.arms[number].recent()]))
            for number in judged(self.traffic) & self.arms.keys()
        )

    def rolled_back(self, event: dict[str, Any]) -> Callable[[], None]:
        """Keep a rollback: time, version, reason, weights. Return a function that forgets it."""
        self.rollbacks.append(event)
        self.rollback_counts[event["version"]] += 1

        def forget() -> None:
            self.rollbacks.remove(event)
            self.rollback_counts[event["version"]] -= 1

        return forget

    def _fitting(
        self, traffic: Traffic, endpoints: Mapping[int, ModelEndpoint]
    ) -> dict[int, ModelEndpoint]:
        """Return the endpoints of the versions that take the same requests; never none.

        Their measure is the lowest version of the settings that serves, else the lowest of all.
        """
        before = self._absent
        serving = [number for number in traffic.versions() if number in endpoints]
        signature = endpoints[min(serving or endpoints)].signature
        reasons = unfit(signature.version, endpoints)
        self._absent = {
            number: reasons.get(number, "") if number in endpoints else "it is not ready"
            for number in traffic.named()
            if number not in endpoints or number in reasons
        }
        for number, reason in self._absent.items():
            if before.get(number) != reason:
                logger.warning(
                    "traffic of model '%s': version %d gets nothing: %s", self.name, number, reason
                )
        self.serving = set(endpoints) - set(reasons)
        return {number: endpoints[number] for number in sorted(self.serving)}

    def share(self, number: int) -> float:
        """Return the share of a version among the requests without a rule, from 0 to 1."""
        return self._choice.shares.get(number, 0.0) if self._choice is not None else 0.0

    def shown(self) -> list[tuple[int, Arm]]:
        """Return number and arm of each version that has a part in the settings, or has got requests."""
        known = self.traffic.versions() if self.traffic is not None else set()
        return [
            (number, arm)
            for number, arm in sorted(self.arms.items())
            if number in known or arm.in_flight or any(arm.results.values())
        ]

    def report(self) -> dict[str, Any]:
        """Return the state of this process as JSON, with the cells of latencies; see report.py."""
        traffic = self.traffic
        return {
            "model": self.name,
            "source": self.source,
            "traffic": None if traffic is None else traffic.as_json(),
            "versions": {
                str(number): {
                    "weight": 0.0 if traffic is None else traffic.weights.get(number, 0.0),
                    "share": self.share(number),
                    "ready": number in self.serving,
                    "reason": self._absent.get(number, ""),
                    "in_flight": arm.in_flight,
                    "results": dict(arm.results),
                    "window_s": arm.window_s,
                    "recent": _as_json(arm.recent()),
                }
                for number, arm in self.shown()
            },
            "shadows": {
                str(number): {
                    "ready": number in self.serving,
                    "reason": self._absent.get(number, ""),
                    **counts.as_json(),
                }
                for number, counts in sorted(self.shown_shadows().items())
            },
            "rollbacks": list(self.rollbacks),
        }

    def shown_shadows(self) -> dict[int, ShadowCounts]:
        """Return version → counters of the versions that get copies by the settings, or have got some."""
        shadow = None if self.traffic is None else self.traffic.shadow
        wanted = {} if shadow is None else {shadow.version: ShadowCounts()}
        return {**wanted, **self.shadows}


def parameter_of(config: ModelConfig) -> str:
    """Return the parameter `traffic` of a configuration; "" without it."""
    found: str = config.parameters[PARAMETER].string_value if PARAMETER in config.parameters else ""
    return found.strip()


def unfit(first: int, endpoints: Mapping[int, ModelEndpoint]) -> dict[int, str]:
    """Return the versions that do not take the requests for the version `first`, with the reasons."""
    measure = endpoints[first].signature
    reasons = {
        number: difference(measure, endpoint.signature) for number, endpoint in endpoints.items()
    }
    return {
        number: f"it takes other requests than version {first}: {text}"
        for number, text in reasons.items()
        if text
    }


def _as_json(recent: dict[str, Any]) -> dict[str, Any]:
    cells: Iterable[tuple[int, int]] = recent["cells"].items()
    return {**recent, "cells": {str(cell): count for cell, count in cells}}
