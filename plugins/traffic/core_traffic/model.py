"""ModelTraffic: the traffic of one model: settings, counters, sequences, and the front made of them.

settings, endpoints of the versions ─► [ModelTraffic] ─► Front
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from core.config import ModelConfig
from core.governing import ModelEndpoint
from core_traffic.arm import Arm
from core_traffic.choice import Choice, Sequences
from core_traffic.front import Front, difference, front_endpoint
from core_traffic.settings import PARAMETER, Traffic

logger = logging.getLogger("core")

WINDOW_S = 10.0

Source = Literal["none", "configuration", "control"]


class ModelTraffic:
    """The traffic of one model. Event loop only.

    name      key of the model
    traffic   settings in force; None for none: the newest version answers
    source    where these come from
    arms      version → counters, for each version that was ever in the traffic
    """

    def __init__(self, name: str, loop: asyncio.AbstractEventLoop):
        self.name = name
        self.traffic: Traffic | None = None
        self.source: Source = "none"
        self.arms: dict[int, Arm] = {}
        self._loop = loop
        self._text = ""  # parameter of the configuration
        self._of_configuration: Traffic | None = None
        self._sequences: Sequences | None = None
        self._choice: Choice | None = None
        self._serving: set[int] = set()  # versions that can answer
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
            idle_us = config.sequence_batching.max_sequence_idle_microseconds
            self._sequences = Sequences(idle_us / 1e6)

    def put(self, traffic: Traffic | None, source: Source) -> None:
        """Put settings in force; `renew` makes the front of them."""
        self.traffic, self.source = traffic, source

    def reset(self) -> None:
        """Put the settings of the configuration in force."""
        self.put(self._of_configuration, "configuration" if self._of_configuration else "none")

    def front(self, endpoints: Mapping[int, ModelEndpoint]) -> ModelEndpoint | None:
        """Return the endpoint for requests without a version; None without settings.

        endpoints   of the versions that serve; not empty
        """
        traffic, self._choice = self.traffic, None
        if traffic is None:
            return None
        fitting = self._fitting(traffic, endpoints)
        for number in {*fitting, *traffic.versions()}:
            if number not in self.arms:
                self.arms[number] = Arm(WINDOW_S)
        self._choice = Choice(traffic, fitting.keys() & traffic.versions(), self.name)
        front = Front(self.name, self._choice, fitting, self.arms, self._sequences)
        first = fitting[min(fitting)]
        return front_endpoint(front, first.signature, self._loop)

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
            for number in traffic.versions()
            if number not in endpoints or number in reasons
        }
        for number, reason in self._absent.items():
            if before.get(number) != reason:
                logger.warning(
                    "traffic of model '%s': version %d gets nothing: %s", self.name, number, reason
                )
        self._serving = set(endpoints) - set(reasons)
        return {number: endpoints[number] for number in sorted(self._serving)}

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
                    "ready": number in self._serving,
                    "reason": self._absent.get(number, ""),
                    "in_flight": arm.in_flight,
                    "results": dict(arm.results),
                    "window_s": arm.window_s,
                    "recent": _as_json(arm.recent()),
                }
                for number, arm in self.shown()
            },
        }


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
