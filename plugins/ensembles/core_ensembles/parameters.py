"""What the parameters of an ensemble say: conditions and fallbacks of steps, loops.

config.pbtxt ─► [rules_of] ─► Rules.  Every key begins with `step[<index>].` or `loop[<index>].`. Here only
the form of the values is checked, and that steps exist; tensors.py and arranging.py check what they mean.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from core.config import ModelConfig
from core.errors import CoreError, invalid
from core.similar import did_you_mean
from core_ensembles.language import Expression, expression_of

_KEY = re.compile(r"(step|loop)\[([0-9]{1,9})\]\.(\w+)")
_FIELDS = {
    "step": ("if", "unless", "else"),
    "loop": ("steps", "while", "max_turns", "at_max_turns", "carry", "if", "unless", "else"),
}
_STEPS = re.compile(r"([0-9]{1,9})(?:\s*-\s*([0-9]{1,9}))?")
_PAIR = re.compile(r"\s*(\S+)\s*->\s*(\S+)\s*")
MOST_TURNS = 1_000_000


@dataclass(frozen=True)
class Condition:
    """A step or a loop runs if `expression` is `runs_if`."""

    expression: Expression
    runs_if: bool


@dataclass(frozen=True)
class Choice:
    """Whether a step or loop runs, and what stands for its outputs if it does not.

    label       for error texts: "step 1 (model 'large')", "loop[0]"
    key         with which its parameters begin
    fallbacks   output → the tensor that stands for it
    """

    label: str
    key: str
    condition: Condition | None = None
    fallbacks: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Loop:
    """Consecutive steps that run again and again.

    first, last   indices of the steps
    again         the condition for another turn; None to run `most` turns
    most          number of turns at most
    strict        whether it is an error that `again` holds after the last of `most` turns
    carry         tensor of this turn → the tensor that has its value in the next turn
    """

    choice: Choice
    first: int
    last: int
    most: int
    again: Expression | None = None
    strict: bool = True
    carry: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        return self.choice.key

    @property
    def size(self) -> int:
        """Return the number of its steps."""
        return self.last - self.first + 1

    def has(self, index: int) -> bool:
        """Return whether the step of that index is one of the loop."""
        return self.first <= index <= self.last


@dataclass(frozen=True)
class Rules:
    """What the parameters of an ensemble say.

    choices   index of a step → its condition and fallbacks, if it has any
    loops     the inner ones first
    """

    ensemble: str
    choices: Mapping[int, Choice]
    loops: tuple[Loop, ...]


def rules_of(config: ModelConfig) -> Rules:
    """Return the rules of an ensemble. Raises CoreError(INVALID) that names the parameter."""
    return _Reader(config).rules()


class _Reader:
    def __init__(self, config: ModelConfig):
        self._config = config
        self._found: dict[str, dict[int, dict[str, str]]] = {"step": {}, "loop": {}}

    def rules(self) -> Rules:
        for key in sorted(self._config.parameters):
            if key.startswith(("step[", "loop[")):
                self._read(key)
        steps = self._config.ensemble_scheduling.step
        choices = {}
        for index, fields in self._found["step"].items():
            if index >= len(steps):
                raise self._wrong(
                    f"step[{index}].{min(fields)}",
                    f"there are {len(steps)} steps, the first is step[0]",
                )
            label = f"step {index} (model '{steps[index].model_name}')"
            choices[index] = self._choice(f"step[{index}]", label, fields)
        loops = [self._loop(index, fields) for index, fields in sorted(self._found["loop"].items())]
        self._check_nesting(loops)
        loops.sort(key=lambda each: each.size)
        return Rules(self._config.name, choices, tuple(loops))

    def _read(self, key: str) -> None:
        if (match := _KEY.fullmatch(key)) is None or match[3] not in _FIELDS[match[1]]:
            kind = key[:4]
            known = ", ".join(f"{kind}[<index>].{name}" for name in _FIELDS[kind])
            near = did_you_mean(match[3], _FIELDS[kind]) if match else ""
            raise self._wrong(key, f"there is no such parameter{near}; there are {known}")
        value = self._config.parameters[key].string_value.strip()
        if not value:
            raise self._wrong(key, "string_value is empty")
        self._found[match[1]].setdefault(int(match[2]), {})[match[3]] = value

    def _choice(self, key: str, label: str, fields: Mapping[str, str]) -> Choice:
        if "if" in fields and "unless" in fields:
            text = f"{label} has another condition already; it can have one"
            raise self._wrong(f"{key}.unless", text)
        condition = None
        for name in ("if", "unless"):
            if name in fields:
                condition = Condition(self._expression(f"{key}.{name}", fields[name]), name == "if")
        pairs = self._pairs(f"{key}.else", fields, "<fallback> -> <output>")
        return Choice(label, key, condition, {output: fallback for fallback, output in pairs})

    def _loop(self, index: int, fields: Mapping[str, str]) -> Loop:
        key = f"loop[{index}]"
        for name, text in (
            ("steps", "the first and the last step, such as 1-2"),
            ("max_turns", "the most turns"),
        ):
            if name not in fields:
                raise self._wrong(f"{key}.{min(fields)}", f"{key} needs {key}.{name}: {text}")
        first, last = self._steps(f"{key}.steps", fields["steps"])
        again = self._expression(f"{key}.while", fields["while"]) if "while" in fields else None
        at_most = fields.get("at_max_turns", "error")
        if at_most not in ("error", "last"):
            text = f"it is '{at_most}'; it can be error (the default) or last, the values of the last turn"
            raise self._wrong(f"{key}.at_max_turns", text)
        carry = self._pairs(f"{key}.carry", fields, "<new> -> <old>")
        if twice := _repeated(new for new, _ in carry):
            raise self._wrong(f"{key}.carry", f"it carries '{twice}' twice")
        return Loop(
            self._choice(key, key, fields),
            first,
            last,
            self._most(f"{key}.max_turns", fields["max_turns"]),
            again,
            at_most == "error",
            dict(carry),
        )

    def _steps(self, key: str, value: str) -> tuple[int, int]:
        count = len(self._config.ensemble_scheduling.step)
        if (match := _STEPS.fullmatch(value)) is None:
            raise self._wrong(key, f"it is '{value}'; it must be one step or two, such as 1 or 1-2")
        first, last = int(match[1]), int(match[2] or match[1])
        if not first <= last < count:
            text = f"{value} are no steps of the ensemble, which has {count}; the first is 0"
            raise self._wrong(key, text)
        return first, last

    def _most(self, key: str, value: str) -> int:
        if not re.fullmatch("[0-9]{1,9}", value) or not 1 <= int(value) <= MOST_TURNS:
            raise self._wrong(key, f"it is '{value}'; it must be a number from 1 to {MOST_TURNS:,}")
        return int(value)

    def _pairs(self, key: str, fields: Mapping[str, str], form: str) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        for part in fields.get(key.rpartition(".")[2], "").split(","):
            if (match := _PAIR.fullmatch(part)) is not None:
                found.append((match[1], match[2]))
            elif part.strip() or found:
                raise self._wrong(key, f"'{part.strip()}' is not of the form {form}")
        if twice := _repeated(target for _, target in found):
            raise self._wrong(key, f"'{twice}' gets two values")
        return found

    def _expression(self, key: str, value: str) -> Expression:
        return expression_of(value, self._where(key))

    def _check_nesting(self, loops: list[Loop]) -> None:
        for number, one in enumerate(loops):
            for other in loops[:number]:
                inside = (one.has(other.first), one.has(other.last))
                around = (other.has(one.first), other.has(one.last))
                same = (one.first, one.last) == (other.first, other.last)
                if same or not (all(inside) or all(around) or not any(inside + around)):
                    text = (
                        f"steps {one.first} to {one.last} overlap those of {other.key}, {other.first} to "
                        f"{other.last}; one loop must lie within the other, or beside it"
                    )
                    raise self._wrong(f"{one.key}.steps", text)

    def _where(self, key: str) -> str:
        return f"in ensemble '{self._config.name}', parameter '{key}'"

    def _wrong(self, key: str, text: str) -> CoreError:
        return invalid(f"{self._where(key)}: {text}")


def _repeated(names: Iterable[str]) -> str:
    """Return the first name that comes a second time; "" if there is none."""
    seen = set[str]()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return ""
