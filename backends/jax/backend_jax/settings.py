"""Settings for JAX: the parameters in config.pbtxt."""

from __future__ import annotations

from dataclasses import dataclass

from core.config import ModelConfig
from core.errors import CoreError, invalid

PARAMETERS = ("inputs", "outputs", "sizes", "shapes")
_MOST_SHAPES = 10_000


@dataclass(frozen=True)
class Settings:
    """The settings of one model.

    inputs    names of the arguments in the order of the file; () for those of the file
    outputs   names of the results in the order of the file; () for those of the file
    sizes     rows for which the function is compiled, ascending; () for powers of two up to max_batch_size
    shapes    how many compiled functions are kept
    """

    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()
    shapes: int = 64


def settings_of(config: ModelConfig) -> Settings:
    """Return the settings in the parameters of a model. Raises CoreError(INVALID) for an invalid value."""
    values = {name: entry.string_value for name, entry in config.parameters.items()}
    shapes = _numbers(config.name, "shapes", values.get("shapes", "")) or (64,)
    if len(shapes) != 1:
        raise _wrong(config.name, "shapes", "one number", values["shapes"])
    return Settings(
        inputs=_names(config.name, "inputs", values.get("inputs", "")),
        outputs=_names(config.name, "outputs", values.get("outputs", "")),
        sizes=_sizes(config, values.get("sizes", "")),
        shapes=shapes[0],
    )


def _names(model: str, parameter: str, text: str) -> tuple[str, ...]:
    names = tuple(each.strip() for each in text.split(",")) if text else ()
    if "" in names or len(set(names)) < len(names):
        raise _wrong(model, parameter, "different names with commas between them", text)
    return names


def _sizes(config: ModelConfig, text: str) -> tuple[int, ...]:
    sizes = tuple(sorted(set(_numbers(config.name, "sizes", text))))
    if sizes and config.max_batch_size and sizes[-1] != config.max_batch_size:
        expected = f"sizes whose largest is max_batch_size, {config.max_batch_size}"
        raise _wrong(config.name, "sizes", expected, text)
    return sizes


def _numbers(model: str, name: str, text: str) -> tuple[int, ...]:
    parts = [each.strip() for each in text.split(",")] if text else []
    for each in parts:
        if not (
            each.isascii() and each.isdigit() and len(each) < 9 and 1 <= int(each) <= _MOST_SHAPES
        ):
            raise _wrong(model, name, f"whole numbers from 1 to {_MOST_SHAPES}", text)
    return tuple(map(int, parts))


def _wrong(model: str, name: str, expected: str, found: str) -> CoreError:
    return invalid(
        f"model '{model}': expected the parameter '{name}' to be {expected}, got {found}; change it in "
        "config.pbtxt"
    )
