"""The engines of the soak: their models, and what their streams must have at their end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.generative import packaged_model

ALPHABET = "abcdefghijklmnopqrstuvwxyz "


class Ended(NamedTuple):
    """A stream at its end: what it has asked for, and what it has got.

    finish      the reason that its last event names; "" for none
    generated   tokens by its usage; -1 if it has none
    """

    route: str
    tokens: int
    text: str
    finish: str
    generated: int


class Soaked(NamedTuple):
    """An engine in the soak.

    parameters    of a model, by the number of the load: another number is another configuration
    model         returns the file of a model; None if it needs none
    most_tokens   of a stream
    patience_s    for a whole stream
    sampling      further fields of each request
    problem       returns what is wrong with a stream, "" for nothing
    growth_mib    that the memory may grow by: loads leave some of it scattered
    least_loads   after which growth counts: a version that ends its last streams keeps its memory meanwhile
    """

    backend: str
    parameters: Callable[[int], dict[str, str]]
    model: Callable[[], Path] | None
    most_tokens: int
    patience_s: float
    sampling: dict[str, Any]
    problem: Callable[[Ended], str]
    growth_mib: float
    least_loads: int

    def config(self, number: int) -> dict[str, Any]:
        """Return a configuration of a model, as JSON."""
        values = self.parameters(number).items()
        return {
            "backend": self.backend,
            "parameters": {name: {"string_value": value} for name, value in values},
        }

    def write(self, folder: Path) -> None:
        """Write a model into a folder of a repository."""
        (folder / "1").mkdir(parents=True)
        if self.model is not None:
            (folder / "1" / "model.gguf").symlink_to(self.model())
        lines = [f'backend: "{self.backend}"']
        for name, value in self.parameters(0).items():
            lines.append(f'parameters {{ key: "{name}" value {{ string_value: "{value}" }} }}')
        (folder / "config.pbtxt").write_text("\n".join(lines))


def _problem_of_letters(found: Ended) -> str:
    """Compare a text with the letters that continue the last one of the prompt."""
    # The template of chats ends with "assistant|>".
    first = ALPHABET.index("u") if found.route == "chat" else 0
    whole = ALPHABET * (found.tokens // len(ALPHABET) + 2)
    return "" if found.text == whole[first : first + found.tokens] else "another text"


def _problem_of_counts(found: Ended) -> str:
    """Compare the numbers of a stream that ends at its limit; its text differs from batch to batch."""
    if found.finish != "length":
        return f"the finish_reason is {found.finish!r}, expected 'length'"
    if found.generated not in (-1, found.tokens):
        return f"its usage has {found.generated} tokens"
    return "" if found.text or found.tokens < 5 else "no text"


LETTERS = Soaked(
    "letters",
    lambda number: {
        "delay_ms": "3",
        "most": str(64 >> number % 3),  # with the smallest, streams wait for others
        "context": str(4096 + number % 7),
    },
    None,
    150,
    60.0,
    {},
    _problem_of_letters,
    8.0,
    0,
)
LLAMACPP = Soaked(
    "llamacpp",
    lambda number: {
        **{"context": "512", "slots": "8", "threads": "1"},
        "prompt_cache_mb": str(8 + number % 7),
    },
    packaged_model,
    40,
    300.0,
    {"ignore_eos": True},
    _problem_of_counts,
    100.0,
    60,
)
ENGINES = {each.backend: each for each in (LETTERS, LLAMACPP)}
