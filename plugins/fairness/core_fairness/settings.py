"""Fairness: the settings of a server, read from JSON and checked. Pure values.

flags, --fair-settings, or a control call ─► [Fairness] ─► fair queues
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from core.errors import invalid
from core.similar import did_you_mean

LEAST_WEIGHT, MOST_WEIGHT = 0.001, 1000.0
MOST_WAITING = 10_000_000
_MOST_ENTRIES = 100_000
_UNITS = ("auto", "rows", "tokens")
_SHARES = ("weights", "default_weight", "max_waiting")
_GROUP = re.compile(r"(?P<name>[^:;=,]+):(?P<models>[^;]+)(;at_once=(?P<at_once>[0-9]+))?")


@dataclass(frozen=True)
class Shares:
    """What callers get.

    weights          name of a caller → weight
    default_weight   weight of the others
    max_waiting      requests of one caller that may wait for one model; 0 for any number
    """

    weights: Mapping[str, float] = field(default_factory=dict)
    default_weight: float = 1.0
    max_waiting: int = 0

    def weight(self, name: str) -> float:
        """Return the weight of a caller."""
        return self.weights.get(name, self.default_weight)

    def as_json(self) -> dict[str, Any]:
        return {
            "weights": dict(sorted(self.weights.items())),
            "default_weight": self.default_weight,
            "max_waiting": self.max_waiting,
        }


@dataclass(frozen=True)
class Own:
    """What differs in one model.

    weights          of callers; the others have the weights of the server
    default_weight   None for that of the server
    max_waiting      None for that of the server
    unit             what a request costs: "rows", "tokens"; None for what the model reports
    """

    weights: Mapping[str, float] = field(default_factory=dict)
    default_weight: float | None = None
    max_waiting: int | None = None
    unit: str | None = None

    def of(self, shares: Shares) -> Shares:
        """Return the shares in the model; `shares` are those of the server."""
        return Shares(
            {**shares.weights, **self.weights},
            shares.default_weight if self.default_weight is None else self.default_weight,
            shares.max_waiting if self.max_waiting is None else self.max_waiting,
        )

    def as_json(self) -> dict[str, Any]:
        found = {"weights": dict(sorted(self.weights.items())) or None, **_optional(self)}
        return {name: value for name, value in found.items() if value is not None}

    @classmethod
    def read(cls, where: str, value: Any) -> Own:
        _check_object(where, value, (*_SHARES, "unit"))
        unit = value.get("unit", "auto")
        if unit not in _UNITS:
            raise invalid(f"{where} unit is {unit!r}, expected one of {', '.join(_UNITS)}")
        given = _shares(where, value, Shares())
        return cls(
            given.weights,
            given.default_weight if "default_weight" in value else None,
            given.max_waiting if "max_waiting" in value else None,
            None if unit == "auto" else unit,
        )


def _optional(own: Own) -> dict[str, Any]:
    return {
        "default_weight": own.default_weight,
        "max_waiting": own.max_waiting,
        "unit": own.unit,
    }


@dataclass(frozen=True)
class Group:
    """Models that share a device, and take turns by weight.

    models    name of the model → weight
    at_once   executions of all of them at once
    """

    models: Mapping[str, float]
    at_once: int = 1

    def as_json(self) -> dict[str, Any]:
        return {"models": dict(sorted(self.models.items())), "at_once": self.at_once}

    @classmethod
    def parse(cls, text: str) -> tuple[str, Group]:
        """Return name and group of NAME:MODEL=WEIGHT,MODEL…;at_once=N. Raises CoreError(INVALID)."""
        found = _GROUP.fullmatch(text)
        if found is None:
            raise invalid(
                f"--fair-models={text}: expected GROUP:MODEL=WEIGHT,MODEL=WEIGHT, and maybe ;at_once=N, such "
                "as gpu0:chat=3,embed=1"
            )
        models: dict[str, Any] = {}
        for part in found["models"].split(","):
            model, _, weight = part.strip().partition("=")
            if not model or model in models:
                raise invalid(f"--fair-models={text}: '{part}' names no model, or one twice")
            models[model] = _number_in(weight) if weight else 1.0
        given = {"models": models, "at_once": int(found["at_once"] or 1)}
        return found["name"], cls.read(f"--fair-models={text}:", given)

    @classmethod
    def read(cls, where: str, value: Any) -> Group:
        _check_object(where, value, ("models", "at_once"))
        models = value.get("models")
        if not isinstance(models, Mapping) or not models:
            raise invalid(f"{where} models is {models!r}, expected an object of model and weight")
        at_once = value.get("at_once", 1)
        if type(at_once) is not int or not 1 <= at_once <= 10_000:
            raise invalid(f"{where} at_once is {at_once!r}, expected a number from 1 to 10000")
        return cls(_weights(f"{where} models", models), at_once)


@dataclass(frozen=True)
class Fairness:
    """The settings of one server.

    shares   of callers, in all models
    models   name of a model → what differs there
    groups   name → models that take turns
    """

    shares: Shares = field(default_factory=Shares)
    models: Mapping[str, Own] = field(default_factory=dict)
    groups: Mapping[str, Group] = field(default_factory=dict)

    def of(self, model: str) -> Shares:
        """Return the shares in one model."""
        own = self.models.get(model)
        return self.shares if own is None else own.of(self.shares)

    def unit_of(self, model: str) -> str | None:
        """Return what a request costs in a model: "rows" or "tokens"; None for what it reports."""
        own = self.models.get(model)
        return None if own is None else own.unit

    def group_of(self, model: str) -> str | None:
        """Return the name of the group of a model; None without one."""
        return next((name for name, group in self.groups.items() if model in group.models), None)

    def as_json(self) -> dict[str, Any]:
        """Return the settings as a JSON object that `read` accepts."""
        models = {name: own.as_json() for name, own in sorted(self.models.items())}
        groups = {name: group.as_json() for name, group in sorted(self.groups.items())}
        return {
            **self.shares.as_json(),
            **({"models": models} if models else {}),
            **({"groups": groups} if groups else {}),
        }

    def with_weight(self, caller: str, weight: float | None, model: str = "") -> Fairness:
        """Return the settings with another weight of one caller, or without its own for None.

        model   in which it counts; "" for all models, but for callers with a weight of their own there
        """
        own = self.models.get(model, Own())
        before = own.weights if model else self.shares.weights
        weights = {name: each for name, each in before.items() if name != caller}
        if weight is not None:
            weights[caller] = _weight(f"fairness: the weight of caller '{caller}'", weight)
        if model:
            return replace(self, models={**self.models, model: replace(own, weights=weights)})
        return replace(self, shares=replace(self.shares, weights=weights))

    @classmethod
    def read(cls, value: Any, base: Fairness | None = None) -> Fairness:
        """Return the settings in a JSON value. Raises CoreError(INVALID) with the field that is wrong.

        base   settings of the flags: for the fields that are not given
        """
        base = base or cls()
        _check_object("fairness:", value, (*_SHARES, "models", "groups"))
        shares = _shares("fairness:", value, base.shares)
        models = {
            name: Own.read(f"fairness: models['{name}']", given)
            for name, given in _objects("models", value).items()
        }
        groups = dict(base.groups)
        if "groups" in value:
            groups = {
                name: Group.read(f"fairness: groups['{name}']", given)
                for name, given in _objects("groups", value).items()
            }
        return cls(shares, models, checked(groups))


def checked(groups: dict[str, Group]) -> dict[str, Group]:
    """Return the groups. Raises CoreError(INVALID) for a model in two of them."""
    seen: dict[str, str] = {}
    for name, group in groups.items():
        for model in group.models:
            if model in seen:
                raise invalid(
                    f"fairness: model '{model}' is in the groups '{seen[model]}' and '{name}'; a model takes "
                    "turns in one"
                )
            seen[model] = name
    return groups


def _shares(where: str, value: Mapping[str, Any], base: Shares) -> Shares:
    found = base
    if "weights" in value:
        if not isinstance(value["weights"], Mapping):
            raise invalid(f"{where} weights is {value['weights']!r}, expected caller and weight")
        found = replace(found, weights=_weights(f"{where} weights", value["weights"]))
    if "default_weight" in value:
        weight = _weight(f"{where} default_weight", value["default_weight"])
        found = replace(found, default_weight=weight)
    if "max_waiting" in value:
        most = value["max_waiting"]
        if type(most) is not int or not 0 <= most <= MOST_WAITING:
            raise invalid(
                f"{where} max_waiting is {most!r}, expected a number from 0 to {MOST_WAITING}"
            )
        found = replace(found, max_waiting=most)
    return found


def _weights(where: str, value: Mapping[str, Any]) -> dict[str, float]:
    if len(value) > _MOST_ENTRIES:
        raise invalid(f"{where} has {len(value)} entries, at most {_MOST_ENTRIES} are possible")
    return {str(name): _weight(f"{where}['{name}']", weight) for name, weight in value.items()}


def _weight(where: str, value: Any) -> float:
    if type(value) not in (int, float) or not LEAST_WEIGHT <= value <= MOST_WEIGHT:
        raise invalid(
            f"{where} is {value!r}, expected a number from {LEAST_WEIGHT:g} to {MOST_WEIGHT:g}"
        )
    return float(value)


def parse_weight(text: str) -> tuple[str, float]:
    """Return the caller and the weight of CALLER=WEIGHT. Raises CoreError(INVALID)."""
    name, separator, weight = text.rpartition("=")
    where = f"--fair-weight={text}"
    if not separator or not name:
        raise invalid(f"{where}: expected CALLER=WEIGHT, such as alice=3")
    return name, _weight(f"{where}: the weight", _number_in(weight))


def _number_in(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def _objects(name: str, value: Mapping[str, Any]) -> Mapping[str, Any]:
    found = value.get(name, {})
    if not isinstance(found, Mapping) or len(found) > _MOST_ENTRIES:
        raise invalid(f"fairness: {name} is {found!r:.60}, expected an object")
    return found


def _check_object(where: str, value: Any, known: Sequence[str]) -> None:
    if not isinstance(value, Mapping):
        raise invalid(f"{where} {value!r:.60} is no object with {', '.join(known)}")
    for name in value:
        if name not in known:
            near = did_you_mean(str(name), known)
            raise invalid(f"{where} has no field '{name}'{near}; its fields: {', '.join(known)}")
