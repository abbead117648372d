"""Traffic: the settings of one model, read from JSON and checked. Pure values.

parameter `traffic` in config.pbtxt, or control call ─► [Traffic] ─► Choice
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from core.errors import invalid
from core.request import InferenceRequest
from core_traffic.fields import Fields, is_number, shown, text_of
from core_traffic.objective import Objective
from core_traffic.shadowing import Shadowing

PARAMETER = "traffic"
MOST_VERSIONS = 64
MOST_WEIGHT = 1_000_000
MOST_RULES = 64
MOST_VALUES = 1000  # of a rule

_FIELDS = ("weights", "sticky", "rules", "shadow", "rollback")
_KEYS = ("header", "parameter", "correlation_id")
_TESTS = ("equals", "in", "prefix")


@dataclass(frozen=True)
class Key:
    """A part of requests.

    kind   "header": a forwarded header, which is a parameter whose name ignores case
    name   of the header, in small letters, or of the parameter; "" for the correlation id
    """

    kind: Literal["header", "parameter", "correlation_id"]
    name: str = ""

    def of(self, request: InferenceRequest) -> str:
        """Return the part of a request as text; "" without it."""
        if self.kind == "correlation_id":
            return str(request.correlation_id or "")
        if not request.has_parameters:
            return ""
        if self.kind == "parameter":
            return text_of(request.parameters.get(self.name, ""))
        for name, value in request.parameters.items():
            if name.lower() == self.name:
                return text_of(value)
        return ""

    def __str__(self) -> str:
        return f"{self.kind} '{self.name}'" if self.name else "correlation id"

    def as_json(self) -> dict[str, Any]:
        return {self.kind: self.name or True}

    @classmethod
    def read(cls, fields: Fields) -> Key:
        """Return the key among the fields of an object. Raises CoreError(INVALID)."""
        found = [each for each in _KEYS if each in fields.values]
        if len(found) != 1:
            raise fields.wrong(f"needs exactly one of {', '.join(_KEYS)}")
        if found == ["correlation_id"]:
            if fields.values["correlation_id"] is not True:
                raise fields.expected("correlation_id", "true")
            return cls("correlation_id")
        if found == ["header"]:
            return cls("header", fields.text("header").lower())
        return cls("parameter", fields.text("parameter"))


@dataclass(frozen=True)
class Rule:
    """Sends the requests that have a certain value to one version.

    values   texts, of which the key has one; None for another test
    prefix   beginning of the key's text; "" accepts every text but an empty one
    """

    key: Key
    version: int
    values: frozenset[str] | None = None
    prefix: str = ""

    def fits(self, request: InferenceRequest) -> bool:
        """Return whether the rule concerns a request."""
        text = self.key.of(request)
        if self.values is not None:
            return text in self.values
        return bool(text) and text.startswith(self.prefix)

    def as_json(self) -> dict[str, Any]:
        test: dict[str, Any] = {}
        if self.values is not None:
            test = {"in": sorted(self.values)}
        elif self.prefix:
            test = {"prefix": self.prefix}
        return {**self.key.as_json(), **test, "version": self.version}

    @classmethod
    def read(cls, root: str, path: str, value: Any) -> Rule:
        """Return the rule in a JSON value. Raises CoreError(INVALID)."""
        fields = Fields(root, path, value, (*_KEYS, *_TESTS, "version"))
        key = Key.read(fields)
        tests = [each for each in _TESTS if each in fields.values]
        if len(tests) > 1:
            raise fields.wrong(f"has {' and '.join(tests)}; a rule has one test or none")
        version, values, prefix = fields.version("version"), None, ""
        if tests == ["equals"]:
            values = frozenset({fields.scalar("equals", fields.values["equals"])})
        elif tests == ["in"]:
            values = frozenset(fields.texts("in", MOST_VALUES))
        elif tests == ["prefix"]:
            prefix = fields.text("prefix")
        return cls(key, version, values, prefix)


@dataclass(frozen=True)
class Traffic:
    """Which versions of a model answer requests that name no version.

    weights   version → weight; shares are in proportion, at least one is positive
    sticky    requests with the same text there go to the same version; None for a draw at each request
    rules     the first one that fits a request decides, before the weights
    shadow    version that gets copies of requests; None for no copies
    rollback  what a version must hold to keep its share; None for no rollback
    """

    weights: Mapping[int, float]
    sticky: Key | None = None
    rules: tuple[Rule, ...] = ()
    shadow: Shadowing | None = None
    rollback: Objective | None = None

    def versions(self) -> set[int]:
        """Return the versions that may answer."""
        return {*self.weights, *(rule.version for rule in self.rules)}

    def named(self) -> set[int]:
        """Return the versions that may answer or get copies."""
        return self.versions() | ({self.shadow.version} if self.shadow is not None else set())

    def headers(self) -> Iterator[str]:
        """Yield the names of the headers that the settings read."""
        for key in (self.sticky, *(rule.key for rule in self.rules)):
            if key is not None and key.kind == "header":
                yield key.name

    def __str__(self) -> str:
        total = sum(self.weights.values())
        parts = [f"version {n} {100 * w / total:.4g} %" for n, w in sorted(self.weights.items())]
        if self.sticky is not None:
            parts.append(f"sticky by {self.sticky}")
        if self.rules:
            parts.append(f"{len(self.rules)} rules")
        if self.shadow is not None:
            parts.append(f"shadow version {self.shadow.version} {100 * self.shadow.share:.4g} %")
        if self.rollback is not None:
            parts.append("rollback by itself")
        return ", ".join(parts)

    def as_json(self) -> dict[str, Any]:
        """Return the settings as a JSON object that `read` accepts."""
        found: dict[str, Any] = {
            "weights": {str(each): weight for each, weight in sorted(self.weights.items())}
        }
        if self.sticky is not None:
            found["sticky"] = self.sticky.as_json()
        if self.rules:
            found["rules"] = [rule.as_json() for rule in self.rules]
        if self.shadow is not None:
            found["shadow"] = self.shadow.as_json()
        if self.rollback is not None:
            found["rollback"] = self.rollback.as_json()
        return found

    @classmethod
    def read(cls, model: str, value: Any) -> Traffic:
        """Return the settings in a JSON value. Raises CoreError(INVALID) with the field that is wrong."""
        root = f"traffic of model '{model}'"
        fields = Fields(root, "", value, _FIELDS)
        sticky = None
        if (given := fields.values.get("sticky")) is not None:
            sticky = Key.read(Fields(root, "sticky", given, _KEYS))
        rules = fields.values.get("rules", [])
        if not isinstance(rules, list) or len(rules) > MOST_RULES:
            raise fields.expected("rules", f"a list of at most {MOST_RULES} rules")
        weights = _weights(fields)
        shadow, rollback = fields.values.get("shadow"), fields.values.get("rollback")
        return cls(
            weights,
            sticky,
            tuple(Rule.read(root, f"rules[{n}]", each) for n, each in enumerate(rules)),
            None if shadow is None else Shadowing.read(root, shadow),
            None if rollback is None else Objective.read(root, rollback, weights),
        )

    @classmethod
    def parse(cls, model: str, text: str) -> Traffic:
        """Return the settings in the parameter of a configuration. Raises CoreError(INVALID)."""
        try:
            value = orjson.loads(text)
        except orjson.JSONDecodeError as error:
            raise invalid(
                f"model '{model}': parameter '{PARAMETER}' is not JSON ({error}): {shown(text)}"
            ) from None
        return cls.read(model, value)


def _weights(fields: Fields) -> dict[int, float]:
    given = fields.values.get("weights")
    if not isinstance(given, Mapping) or not 1 <= len(given) <= MOST_VERSIONS:
        what = f'1 to {MOST_VERSIONS} versions with their weights, such as {{"1": 95, "2": 5}}'
        raise fields.expected("weights", what)
    weights: dict[int, float] = {}
    for name, weight in given.items():
        number = fields.version_of(name, "weights")
        if number in weights:
            raise fields.of("weights", f"has version {number} twice")
        if not is_number(weight) or not 0 <= weight <= MOST_WEIGHT:
            raise fields.of(
                f"weights.{number}",
                f"is {shown(weight)}, expected a number from 0 to {MOST_WEIGHT}",
            )
        weights[number] = weight
    if not any(weights.values()):
        raise fields.of("weights", "are all 0: no version would answer; give one a weight above 0")
    return weights
