"""Choose the optimization profile of a batch.

shapes of a batch ─► [chosen] ─► the context of that profile.  No calls of CUDA or TensorRT.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from backend_tensorrt.facts import Bounds, Facts
from core.errors import CoreError, invalid

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Profile:
    """One optimization profile of an engine: limits for the shape of each input, and for values of shape
    tensors."""

    number: int
    shapes: Mapping[str, Bounds]
    values: Mapping[str, Bounds]

    def holds(self, shapes: Mapping[str, Shape], values: Mapping[str, Shape]) -> bool:
        """Return whether the profile allows a batch."""
        return self.refused(shapes, values) is None

    def refused(self, shapes: Mapping[str, Shape], values: Mapping[str, Shape]) -> str | None:
        """Return the name of the first input that the profile does not allow; None if it allows all."""
        for allowed, found in ((self.shapes, shapes), (self.values, values)):
            for name, bounds in allowed.items():
                if not bounds.hold(found[name]):
                    return name
        return None

    def distance(self, shapes: Mapping[str, Shape], values: Mapping[str, Shape]) -> int:
        """Return the distance of a batch from the profile's optimum: the sum of the differences of sizes."""
        return sum(
            abs(size - best)
            for allowed, found in ((self.shapes, shapes), (self.values, values))
            for name, bounds in allowed.items()
            for size, best in zip(found[name], bounds.best, strict=True)
        )


def profiles_of(facts: Facts, names: Sequence[str], model: str) -> tuple[Profile, ...]:
    """Return the profiles that an instance uses, without duplicates.

    names   instance_group.profile in config.pbtxt: profile numbers as text; empty for profile 0
    Raises CoreError(INVALID) for a profile that the engine does not have.
    """
    return tuple(_profile(facts, number) for number in numbers(names, facts.profile_count, model))


def numbers(names: Sequence[str], count: int, model: str) -> tuple[int, ...]:
    """Return the numbers in `names` without duplicates.

    names   numbers as text; empty for profile 0
    count   number of profiles of the engine
    Raises CoreError(INVALID) for text that is not a whole number below `count`.
    """
    found: dict[int, None] = {}
    for name in names or ("0",):
        if not (name.isascii() and name.isdigit() and int(name) < count):
            raise invalid(
                f"unable to load model '{model}': instance_group.profile says '{name}', the engine has "
                f"the optimization profiles 0 to {count - 1}; change it in config.pbtxt"
            )
        found[int(name)] = None
    return tuple(found)


def _profile(facts: Facts, number: int) -> Profile:
    values = {
        name: bounds
        for name, port in facts.inputs.items()
        if port.on_host and (bounds := port.values[number]) is not None
    }
    return Profile(number, {n: p.shapes[number] for n, p in facts.inputs.items()}, values)


def chosen(
    profiles: Sequence[Profile],
    shapes: Mapping[str, Shape],
    values: Mapping[str, Shape],
    model: str,
) -> Profile:
    """Return the profile that allows a batch and has the nearest optimum; of equal ones the first.

    shapes   of every input, with the batch dimension
    values   of every shape tensor
    Raises CoreError(INVALID) if no profile allows the batch.
    """
    if len(profiles) == 1 and profiles[0].holds(shapes, values):
        return profiles[0]
    fitting = [each for each in profiles if each.holds(shapes, values)]
    if not fitting:
        raise _outside(profiles, shapes, values, model)
    return min(fitting, key=lambda each: each.distance(shapes, values))


def _outside(
    profiles: Sequence[Profile],
    shapes: Mapping[str, Shape],
    values: Mapping[str, Shape],
    model: str,
) -> CoreError:
    parts = []
    for each in profiles:
        name = each.refused(shapes, values)
        assert name is not None
        if name in each.shapes and not each.shapes[name].hold(shapes[name]):
            what, found, bounds = "shape", shapes[name], each.shapes[name]
        else:
            what, found, bounds = "values", values[name], each.values[name]
        parts.append(
            f"profile {each.number} takes {bounds} for the {what} of input '{name}', which is {list(found)}"
        )
    return invalid(
        f"model '{model}': a batch that no optimization profile of the instance allows: {'; '.join(parts)}"
    )
