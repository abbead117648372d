"""Parameters of a model in config.pbtxt. Names of the scheduler's settings are those of SchedulerConfig.

ModelConfig ─► [settings] ─► Settings
"""

from __future__ import annotations

from dataclasses import dataclass

from backend_openvino_genai.files import Facts
from core.config import ModelConfig
from core.errors import CoreError, invalid

PARAMETERS = (
    "cache_size",
    "chat_template",
    "context",
    "device",
    "dynamic_split_fuse",
    "enable_prefix_caching",
    "kv_cache_precision",
    "max_num_batched_tokens",
    "max_num_seqs",
    "num_kv_blocks",
    "pooling",
    "task",
    "threads",
)
TASKS = ("generate", "embed", "rank", "transcribe")
POOLINGS = ("cls", "mean", "last")
PRECISIONS = ("f32", "f16", "bf16", "u8", "i8", "u4")
_OF_TASK = {
    "generate": frozenset(PARAMETERS) - {"pooling"},
    "embed": frozenset({"context", "device", "pooling", "task", "threads"}),
    "rank": frozenset({"context", "device", "task", "threads"}),
    "transcribe": frozenset({"device", "task", "threads"}),
}
SUPPORTS = frozenset(
    {
        "tokens",
        "temperature",
        "top_p",
        "top_k",
        "min_p",
        "frequency_penalty",
        "presence_penalty",
        "repetition_penalty",
        "seed",
        "min_tokens",
        "stop_tokens",
        "ignore_eos",
        "logprobs",
        "schema",
        "regex",
        "grammar",
        "choices",
    }
)
TRANSCRIBES = frozenset({"language", "prompt", "temperature", "times"})
_SEQUENCES = 16  # at once, where config.pbtxt gives none: each needs its own part of the cache
_BATCHED = 256  # as in SchedulerConfig
_MOST = 2**31 - 1


@dataclass(frozen=True)
class Settings:
    """How a model runs.

    context             tokens of one generation, prompt and answer together
    template            chat template; "" for none
    device              an OpenVINO device, such as "CPU" or "GPU.0"
    threads             threads that compute; 0: OpenVINO chooses
    sequences           generations at once
    batched_tokens      tokens of one step, those of prompts and of answers together
    cache_gb            size of the cache of keys and values in GB; 0: it grows
    cache_blocks        the same as number of blocks; 0: `cache_gb` decides
    prefix_caching      whether the cache keeps prompts for later ones that begin alike
    split_fuse          whether a step computes parts of prompts beside tokens of answers
    cache_precision     datatype of the cache; "" for that of the device
    task                "generate", "embed", "rank" or "transcribe"
    pooling             how embeddings of tokens become one; "" for that of the first token
    """

    context: int
    template: str = ""
    device: str = "CPU"
    threads: int = 0
    sequences: int = _SEQUENCES
    batched_tokens: int = _BATCHED
    cache_gb: int = 0
    cache_blocks: int = 0
    prefix_caching: bool = False
    split_fuse: bool = True
    cache_precision: str = ""
    task: str = "generate"
    pooling: str = ""

    @property
    def supports(self) -> frozenset[str]:
        """Return what a model with these settings supports, as the names of Engine.supports."""
        if self.task == "transcribe":
            return TRANSCRIBES
        return SUPPORTS if self.task == "generate" else frozenset()


def settings_of(config: ModelConfig, facts: Facts) -> Settings:
    """Return the settings of a model. Raises CoreError(INVALID) that names the parameter.

    facts   what the files say
    """
    values = _Values(config)
    if "cache_size" in values and "num_kv_blocks" in values:
        raise values.wrong("num_kv_blocks", "absent: 'cache_size' sets the size of the cache, too")
    task = values.choice("task", TASKS) or facts.task
    values.check_known(_OF_TASK[task], f"absent for the task '{task}'")
    return Settings(
        context=values.number("context", facts.context, 16, facts.context),
        template=values.text("chat_template") or facts.template,
        device=values.text("device") or "CPU",
        threads=values.number("threads", 0, 1, 1024),
        sequences=values.number("max_num_seqs", _SEQUENCES, 1, 65536),
        batched_tokens=values.number("max_num_batched_tokens", _BATCHED, 1, _MOST),
        cache_gb=values.number("cache_size", 0, 1, 65536),
        cache_blocks=values.number("num_kv_blocks", 0, 1, _MOST),
        prefix_caching=values.flag("enable_prefix_caching", False),
        split_fuse=values.flag("dynamic_split_fuse", True),
        cache_precision=values.choice("kv_cache_precision", PRECISIONS),
        task=task,
        pooling=values.choice("pooling", POOLINGS),
    )


class _Values:
    """Values of the parameters of a model. An empty text counts as not set."""

    def __init__(self, config: ModelConfig):
        self._model = config.name
        values = {name: entry.string_value for name, entry in config.parameters.items()}
        self._values = {name: text for name, text in values.items() if text}

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def check_known(self, known: frozenset[str], expected: str) -> None:
        """Raise CoreError(INVALID) if a parameter of this backend is set that is not in `known`."""
        for name in PARAMETERS:
            if name in self._values and name not in known:
                raise self.wrong(name, expected)

    def text(self, name: str) -> str:
        return self._values.get(name, "")

    def number(self, name: str, default: int, low: int, high: int) -> int:
        """Return a whole number; `default` if it is not set. Raises CoreError(INVALID) outside its range."""
        text = self._values.get(name)
        if text is None:
            return default
        readable = text.isascii() and text.isdigit() and len(text) <= 10
        if not readable or not low <= int(text) <= high:
            raise self.wrong(name, f"a number from {low} to {high}")
        return int(text)

    def flag(self, name: str, default: bool) -> bool:
        """Return a truth value; `default` if it is not set. Raises CoreError(INVALID) for another text."""
        text = self._values.get(name, str(default)).lower()
        if text not in ("true", "false"):
            raise self.wrong(name, "true or false")
        return text == "true"

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        """Return one of `choices`; "" if it is not set. Raises CoreError(INVALID) for another text."""
        text = self._values.get(name, "")
        if text and text not in choices:
            raise self.wrong(name, f"one of {', '.join(choices)}")
        return text

    def wrong(self, name: str, expected: str) -> CoreError:
        found = self._values.get(name, "")[:80]
        return invalid(
            f"model '{self._model}': parameter '{name}' is '{found}', it must be {expected}"
        )
