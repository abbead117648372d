"""The options of fair shares."""

from __future__ import annotations

from dataclasses import dataclass

from core.errors import invalid
from core.options import Options, Section, group
from core.options.values import BOOL, FLOAT, STRING, Form, integer
from core_fairness.settings import Fairness, Group, checked, parse_weight

_fair = group("Fair shares")
ALL = "*"


def _texts(metavar: str) -> Form:
    return Form(metavar, lambda flag, text: text, lambda so_far, new: [*so_far, new])


@dataclass(kw_only=True)
class FairOptions(Section):
    # fmt: off
    fair: list[str] = _fair(_texts("<model>"), [],
        "Let callers take turns in this model; * for all models (docs/operate/fairness.md). Repeatable.")
    fair_weight: list[str] = _fair(_texts("<caller>=<weight>"), [],
        "Share of a caller in proportion to the others, such as alice=3. Repeatable.")
    fair_default_weight: float = _fair(FLOAT, 1.0, "Weight of the callers that --fair-weight does not name.")
    fair_max_waiting: int = _fair(integer(), 0,
        "Requests of one caller that may wait for one model; more are refused with 429. 0: any number.")
    fair_settings: str = _fair(STRING, "",
        "JSON file with weights, bounds and groups; it is read again when it changes.")
    fair_header: str = _fair(STRING, "",
        "Header that names a caller without a token, set by a proxy in front of the server.")
    fair_addresses: bool = _fair(BOOL, False,
        "Tell callers without a name apart by their addresses; without it they are one caller.")
    fair_models: list[str] = _fair(_texts("<group>:<model>=<weight>,…"), [],
        "Models that share a device take turns by weight, such as gpu0:chat=3,embed=1. Repeatable.")
    # fmt: on

    @property
    def wanted(self) -> bool:
        """Whether anything takes turns."""
        return bool(self.fair or self.fair_models)

    def includes(self, model: str) -> bool:
        """Return whether callers take turns in a model."""
        return model in self.fair or ALL in self.fair

    def fairness(self) -> Fairness:
        """Return the settings of the flags. Raises CoreError(INVALID) for a wrong value."""
        groups: dict[str, Group] = {}
        for text in self.fair_models:
            name, found = Group.parse(text)
            if name in groups:
                raise invalid(f"--fair-models={text}: there is another group '{name}'")
            groups[name] = found
        shares = {
            "weights": dict(parse_weight(text) for text in self.fair_weight),
            "default_weight": self.fair_default_weight,
            "max_waiting": self.fair_max_waiting,
        }
        return Fairness(Fairness.read(shares).shares, groups=checked(groups))

    def check(self, options: Options) -> None:
        """Raise CoreError(INVALID) for wrong values, and for flags that have no effect."""
        self.fairness()
        if self.wanted:
            return
        without = FairOptions()
        given = [
            name
            for name in vars(without)
            if name != "fair" and getattr(self, name) != getattr(without, name)
        ]
        if given:
            flag = given[0].replace("_", "-")
            raise invalid(
                f"--{flag} has no effect without --fair=MODEL, or --fair=* for all models"
            )
