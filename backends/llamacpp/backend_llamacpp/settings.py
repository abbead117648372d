"""Parameters of a model in config.pbtxt, and the description that follows from them and the file.

ModelConfig, Metadata ─► [settings] ─► Settings, Description
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from core_generate import Description
from core_generate.gguf import Metadata, check_model, read_metadata

from backend_llamacpp import runs
from core.config import ModelConfig
from core.errors import CoreError, invalid
from core.model_file import check_readable, not_found
from core.system.platform import cores

logger = logging.getLogger("core")

FILE = "model.gguf"
MARKER = "<__media__>"  # stands for an image or sound in the text of a prompt
PARAMETERS = (
    "adapters",
    "batch",
    "cache_type",
    "chat_template",
    "context",
    "gpu_layers",
    "mmproj",
    "pooling",
    "prompt_cache_mb",
    "slots",
    "task",
    "threads",
)
# Bytes of a number in the cache of keys and values: blocks of 32 numbers have a scale each.
CACHE_TYPES = {
    "f32": 4.0,
    "f16": 2.0,
    "bf16": 2.0,
    "q8_0": 34 / 32,
    "q5_1": 24 / 32,
    "q4_0": 18 / 32,
}
POOLINGS = ("mean", "cls", "last")
GENERATES = frozenset(
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
        "ignore_eos",
        "logit_bias",
        "logprobs",
        "schema",
        "regex",
        "grammar",
        "choices",
    }
)
EMBEDS = frozenset({"tokens"})
_TASKS = ("generate", "embed", "rank")
_POOLING_RANK = 4  # of GGUF: 1 to 3 are those of embeddings
_CONTEXT = 4096  # tokens, where config.pbtxt gives none: a long context costs much memory
# Keys of files that encode images or sound → what they let a model read, as the names of Engine.supports.
_ENCODERS = {"clip.has_vision_encoder": "images", "clip.has_audio_encoder": "audio"}
_NO_PROJECTOR: tuple[None, frozenset[str]] = (None, frozenset())
_INFILL = ("fim_pre", "fim_suf", "fim_mid")


@dataclass(frozen=True)
class Settings:
    """How a model runs.

    task             "generate", "embed" or "rank"
    context          tokens of one generation, prompt and answer together
    slots            generations at once
    threads          threads that compute
    batch            tokens that are computed at once, for which a cancellation waits; None: what suits the
                     device
    gpu_layers       layers on GPUs; None: as many as fit
    pooling          how embeddings of tokens become one; "" for the way of the file
    cache_type       datatype of the cache of keys and values
    prompt_cache_mb  main memory for prompts that no slot holds any more
    template         chat template
    rank_template    text with {query} and {document} that a model which ranks reads; "" if it reads both as
                     they are, with special tokens between
    adapters         name of a LoRA adapter → its file
    projector        file that turns images or sound into tokens of the model; None: it takes neither
    media            what that file encodes: "images", "audio" or both; nothing without one
    infill           texts of the tokens before a prefix, before a suffix and before what is filled in; ()
                     if the model has none
    short_runs       whether texts must have no long run of characters of one kind: see runs.py
    """

    task: str = "generate"
    context: int = _CONTEXT
    slots: int = 4
    threads: int = 1
    batch: int | None = None
    gpu_layers: int | None = None
    pooling: str = ""
    cache_type: str = "f16"
    prompt_cache_mb: int = 256
    template: str = ""
    rank_template: str = ""
    adapters: Mapping[str, Path] = field(default_factory=dict)
    projector: Path | None = None
    media: frozenset[str] = frozenset()
    infill: tuple[str, ...] = ()
    short_runs: bool = False

    @property
    def supports(self) -> frozenset[str]:
        """What a model with these settings supports, as the names of Engine.supports; empty for "rank"."""
        if self.task != "generate":
            return EMBEDS if self.task == "embed" else frozenset()
        has = {"suffix": self.infill, "adapter": self.adapters}
        return GENERATES | {name for name, value in has.items() if value} | self.media


def model_file(config: ModelConfig, directory: Path) -> Path:
    """Return the GGUF file of a version. Raises CoreError if it is not there, or cannot be read."""
    path = directory / (config.default_model_filename or FILE)
    if not path.is_file():
        raise not_found(path, config.name)
    check_readable(path, config.name)
    return path


def describe(config: ModelConfig, directory: Path) -> Description:
    """Return what a frontend must know of a model.

    Raises CoreError(INVALID) for a wrong parameter, and for a file without the metadata of a model.
    """
    file = model_file(config, directory)
    metadata = read_metadata(file)
    check_model(file, metadata)
    settings = settings_of(config, directory, metadata)
    return Description(
        task=settings.task,
        context=settings.context,
        template=settings.template,
        bos=metadata.token("bos"),
        eos=metadata.token("eos"),
        supports=settings.supports,
        adapters=tuple(settings.adapters),
        marker=MARKER if settings.projector else "",
    )


def settings_of(config: ModelConfig, directory: Path, metadata: Metadata) -> Settings:
    """Return the settings of a model. Raises CoreError(INVALID) that names the parameter."""
    values = _Values(config)
    trained = metadata.number("context_length", _CONTEXT)
    template = str(metadata.values.get("tokenizer.chat_template", ""))
    infill = tuple(metadata.token(each) for each in _INFILL)
    task = _task(values, metadata)
    projector, media = _projector(values, directory) if task == "generate" else _NO_PROJECTOR
    return Settings(
        task=task,
        context=values.number("context", min(_CONTEXT, trained), 16, trained),
        slots=values.number("slots", 4, 1, 1024),
        threads=values.number("threads", max(1, len(cores()) // 2), 1, 1024),
        batch=values.number("batch", 0, 1, 65536) if "batch" in values else None,
        gpu_layers=values.number("gpu_layers", -1, -1, 65536) if "gpu_layers" in values else None,
        pooling=_pooling(values, metadata, task),
        cache_type=values.choice("cache_type", ("f16", *CACHE_TYPES)),
        prompt_cache_mb=values.number("prompt_cache_mb", 256, 0, 2**31 - 1),
        template=values.text("chat_template") or template,
        rank_template=str(metadata.values.get("tokenizer.chat_template.rerank", "")),
        adapters=_adapters(values, directory),
        projector=projector,
        media=media,
        infill=infill if all(infill) else (),
        short_runs=runs.are_bounded(metadata),
    )


class _Values:
    """Values of the parameters of a model."""

    def __init__(self, config: ModelConfig):
        self.model = config.name
        self._values = {name: entry.string_value for name, entry in config.parameters.items()}

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def text(self, name: str) -> str:
        return self._values.get(name, "")

    def number(self, name: str, default: int, low: int, high: int) -> int:
        """Return a whole number; `default` if the parameter is not set or empty.

        Raises CoreError(INVALID) unless it is from `low` to `high`.
        """
        text = self._values.get(name, "")
        if not text:
            return default
        digits = text.removeprefix("-")
        readable = digits.isascii() and digits.isdigit() and len(digits) <= 10
        if not readable or not low <= int(text) <= high:
            raise self.wrong(name, f"a number from {low} to {high}")
        return int(text)

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        """Return the parameter's text; the first of `choices` if it is not set.

        Raises CoreError(INVALID) unless it is one of `choices`.
        """
        text = self._values.get(name, choices[0])
        if text not in choices:
            raise self.wrong(name, f"one of {', '.join(filter(None, choices))}")
        return text

    def wrong(self, name: str, expected: str) -> CoreError:
        found = self._values.get(name, "")[:80]
        return invalid(
            f"model '{self.model}': parameter '{name}' is '{found}', it must be {expected}"
        )


def _task(values: _Values, metadata: Metadata) -> str:
    """Return the parameter `task`; if it is not set, the task that the file's pooling shows.

    Raises CoreError(INVALID) for an unknown task, and for "rank" unless the file's model ranks.
    """
    pooling = metadata.number("pooling_type")
    of_file = "rank" if pooling == _POOLING_RANK else "embed" if pooling else "generate"
    task = values.choice("task", (of_file, *_TASKS))
    if task == "rank" and of_file != "rank":
        raise values.wrong("task", "'generate' or 'embed': the file holds no model that ranks")
    return task


def _pooling(values: _Values, metadata: Metadata, task: str) -> str:
    """Return the parameter `pooling`; "" if it is not set.

    Raises CoreError(INVALID) for a model of the task "embed" where neither it nor the file names a way:
    llama.cpp would compute, and then refuse, each request.
    """
    pooling = values.choice("pooling", ("", *POOLINGS))
    if task == "embed" and not pooling and not metadata.number("pooling_type"):
        raise invalid(
            f"model '{values.model}': the file does not say how an embedding is made of those of tokens; "
            f"set the parameter 'pooling' to one of {', '.join(POOLINGS)}"
        )
    return pooling


def _adapters(values: _Values, directory: Path) -> dict[str, Path]:
    """Return name → file of the LoRA adapters; {} if the parameter is not set.

    The parameter is a JSON object of names and files in `directory`, the folder of the version.
    Raises CoreError(INVALID) for another form, and for a file that is not there.
    """
    text = values.text("adapters")
    try:
        document = json.loads(text or "{}")
    except (ValueError, RecursionError):
        document = None
    expected = (
        'a JSON object such as {"french": "french.gguf"} of files in the folder of the version'
    )
    if type(document) is not dict:
        raise values.wrong("adapters", expected)
    found = {}
    for name, file in document.items():
        if type(file) is not str or not name or Path(file).name != file or file in (".", ".."):
            raise values.wrong("adapters", expected)
        if not (directory / file).is_file():
            raise values.wrong("adapters", f"{expected}: '{directory / file}' is not there")
        found[name] = directory / file
    return found


def _projector(values: _Values, directory: Path) -> tuple[Path | None, frozenset[str]]:
    """Return the file that encodes images or sound, and what it encodes.

    It is that of the parameter `mmproj`, else the only mmproj*.gguf. None if the parameter is "none", or if
    the only file encodes neither.
    Raises CoreError(INVALID) for a file that is named but is not there or encodes neither, and for several
    files.
    """
    name = values.text("mmproj")
    if name == "none":
        return _NO_PROJECTOR
    if name:
        file = directory / name
        if Path(name).name != name or not file.is_file():
            raise values.wrong(
                "mmproj", "'none', or the name of a file in the folder of the version"
            )
    else:
        found = sorted(directory.glob("mmproj*.gguf"))
        if len(found) > 1:
            listed = ", ".join(each.name for each in found)
            raise values.wrong("mmproj", f"'none', or the name of one of the files: {listed}")
        if not found:
            return _NO_PROJECTOR
        file = found[0]
    check_readable(file, values.model)
    if media := _media(file):
        return file, media
    if name:
        raise values.wrong("mmproj", f"a file that encodes images or sound: '{file}' does not")
    logger.warning(
        "model '%s': '%s' encodes no images or sound, it is not used", values.model, file
    )
    return _NO_PROJECTOR


def _media(file: Path) -> frozenset[str]:
    """Return what a file encodes."""
    values = read_metadata(file).values
    return frozenset(name for key, name in _ENCODERS.items() if values.get(key))
