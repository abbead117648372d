"""JSON with everything that was measured."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from core_tune.observation import Observation
from core_tune.queueing.machine import Machine
from core_tune.report.outcome import Outcome
from core_tune.settings import Settings

FORMAT = 1


def json_text(outcome: Outcome, command: str) -> str:
    return json.dumps(document(outcome, command), indent=1, ensure_ascii=False) + "\n"


def document(outcome: Outcome, command: str) -> dict[str, Any]:
    """Return the document. Names end with the unit; a missing value is null."""
    found = outcome.found
    return {
        "format": FORMAT,
        "command": command,
        "model": outcome.model,
        "objective": {"name": outcome.objective.name, "s": outcome.objective.seconds},
        "now": asdict(outcome.space.current),
        "best": asdict(outcome.best) if outcome.best else None,
        "settings": [
            {
                **asdict(each),
                "requests_per_s": limit,
                "deviation": found.deviations[each],
            }
            for each, limit in found.limits.items()
        ],
        "times": {kind: _machine(each) for kind, each in found.machines.items()},
        "measurements": [measurement(each) for each in found.observations],
        "refused": [{**asdict(each), "reason": reason} for each, reason in found.refused.items()],
        "combinations": len(outcome.space),
        "seconds": outcome.seconds,
        "interrupted": outcome.interrupted,
        "difference": outcome.difference or None,
    }


def measurement(seen: Observation) -> dict[str, Any]:
    """Return one measurement, as in the document."""
    return {
        **_named(seen.settings),
        "rate": seen.rate or None,
        "at_once": seen.clients or None,
        "answers_per_s": seen.answered,
        "latency_s": seen.latency_s,
        "latency_of_rounds_s": list(seen.parts_s),
        "average_s": seen.client_s,
        "server_average_s": seen.server_s or None,
        "executions": [asdict(each) for each in seen.sizes],
        "measured_s": seen.seconds,
        "at_s": seen.at_s,
    }


def _machine(machine: Machine) -> dict[str, Any]:
    """Return the times of executions by the model of the queue."""
    return {
        "execution_s": machine.base_s,
        "row_s": machine.row_s,
        "cores": machine.cores,
        "shared_by_threads": machine.shared,
        "outside_s": machine.front_s,
    }


def _named(settings: Settings) -> dict[str, Any]:
    return asdict(settings)
