"""The options of a server and the parameters of a model."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from core.config import ModelConfig
from core.errors import CoreError, invalid
from core.options import Section, group
from core.options.values import BOOL, FLOAT, Form, integer
from core_memory_budget.sizes import HOST, Bytes, read_sizes

logger = logging.getLogger("core")

PARAMETERS = (
    "memory.estimate",
    "memory.pin",
    "memory.priority",
    "memory.load_on_request",
    "memory.idle_secs",
)

_SIZES = Form("[<device>:]<size>", lambda flag, text: text, lambda so_far, new: [*so_far, new])
_memory = group("Memory of models")


@dataclass(kw_only=True)
class MemoryOptions(Section):
    # fmt: off
    memory_budget: list[str] = _memory(_SIZES, [],
        "Memory that models may take, such as 8G, 50% or gpu0:20G; repeat it for each device. With workers, "
        "each gets an equal part.")
    load_on_request: bool = _memory(BOOL, False,
        "Load each model at its first request instead of at the start; the parameter memory.load_on_request "
        "of a model takes precedence.")
    memory_account: bool = _memory(BOOL, False,
        "Measure what each model takes, also without a budget. Loads that are measured follow each other.")
    memory_wait_secs: float = _memory(FLOAT, 60.0,
        "Longest time for which a request waits for the load of its model, and a load for memory.")
    memory_waiting_requests: int = _memory(integer(1), 1000,
        "Requests of one model that may wait for its load; more are refused.")
    # fmt: on

    @property
    def measures(self) -> bool:
        """Whether loads are measured, and follow each other therefore."""
        return self.memory_account or bool(self.memory_budget)

    def governs(self, config: ModelConfig) -> bool:
        """Return whether loads of a model are measured, or may be started by requests."""
        if self.measures:
            return True
        try:
            settings = ModelMemory.of(config, self.load_on_request)
        except CoreError:
            return False  # its load reports the error
        return settings.on_request or settings.idle_s > 0

    def budget(self, totals: Mapping[str, int], workers: int, gpus: Sequence[int]) -> Bytes:
        """Return the budget of one worker: device → bytes.

        totals   memory of each device, for per cent
        gpus     numbers of the visible GPUs; without any, a budget of a GPU only leads to a warning
        Raises CoreError(INVALID) for an invalid size, for two sizes of one device, and for an unknown GPU.
        """
        text = ",".join(self.memory_budget)
        sizes = read_sizes("--memory-budget", text, totals) if text else {}
        known = [f"gpu{number}" for number in gpus]
        unknown = sorted(sizes.keys() - {HOST, *known})
        if unknown and known:
            raise invalid(
                f"--memory-budget: there is no {unknown[0]} here, expected host or one of "
                f"{', '.join(known)}; CUDA_VISIBLE_DEVICES chooses which GPUs these are"
            )
        if unknown:
            logger.warning(
                "--memory-budget: no GPU is visible here, so nothing is measured for the budget of %s",
                ", ".join(unknown),
            )
        return {device: size // max(1, workers) for device, size in sizes.items()}


@dataclass(frozen=True)
class ModelMemory:
    """The parameters `memory.*` of one model.

    estimate     device → bytes that a load needs; empty for what is measured, or follows from the files
    pin          whether a budget never unloads the model
    priority     models with a smaller number are unloaded first
    on_request   whether the model is loaded by its first request, and may be unloaded for others
    idle_s       seconds without a request after which it is unloaded; 0 for never
    """

    estimate: Mapping[str, int] = field(default_factory=dict)
    pin: bool = False
    priority: int = 0
    on_request: bool = False
    idle_s: float = 0.0

    @classmethod
    def of(cls, config: ModelConfig, on_request: bool) -> ModelMemory:
        """Return the parameters of a model. Raises CoreError(INVALID) for a wrong value.

        on_request   default of memory.load_on_request
        """
        given = {
            name: config.parameters[name].string_value.strip()
            for name in PARAMETERS
            if name in config.parameters
        }

        def of(name: str) -> str:
            return f"model '{config.name}': parameter {name}"

        def read_bool(name: str, default: bool) -> bool:
            text = given.get(name, str(default)).lower()
            if text not in ("true", "false"):
                raise invalid(f"{of(name)} is '{text}', expected true or false")
            return text == "true"

        estimate = given.get("memory.estimate", "")
        return cls(
            read_sizes(of("memory.estimate"), estimate) if estimate else {},
            read_bool("memory.pin", False),
            int(_number(of("memory.priority"), given.get("memory.priority", "0"), whole=True)),
            read_bool("memory.load_on_request", on_request),
            _number(of("memory.idle_secs"), given.get("memory.idle_secs", "0")),
        )


def check_parameters(config: ModelConfig) -> None:
    """Raise the CoreError(INVALID) of a load for a wrong value. `core check` calls it."""
    ModelMemory.of(config, on_request=False)


def _number(what: str, text: str, whole: bool = False) -> float:
    try:
        number = int(text) if whole else float(text)
    except ValueError:
        raise invalid(f"{what} is '{text}', expected a {'whole ' * whole}number") from None
    if not (whole or 0 <= number < float("inf")):
        raise invalid(f"{what} is '{text}', expected a number of seconds from 0 on")
    return number
