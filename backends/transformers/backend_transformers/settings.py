"""Parameters of a model in config.pbtxt, and the description that follows from them and the folder.

ModelConfig, Folder ─► [settings] ─► Settings, Description
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from core_generate import Description
from core_generate.hugging_face import POOLINGS

from backend_transformers.folder import CONFIG, IMAGES, PROCESSORS, SOUNDS, Folder
from backend_transformers.pooling import Pooling, read_pooling
from core.config import ModelConfig
from core.errors import CoreError, invalid
from core.model_file import not_found
from core.system.platform import cores

PARAMETERS = (
    "batch",
    "chat_template",
    "context",
    "device",
    "dtype",
    "max_megapixels",
    "normalize",
    "pooling",
    "slots",
    "task",
    "threads",
    "trust_remote_code",
)
TASKS = ("generate", "embed", "rank", "classify", "transcribe")
DTYPES = ("float32", "bfloat16", "float16")
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
        "min_tokens",
        "stop_tokens",
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
TRANSCRIBES = frozenset({"language", "prompt", "temperature", "times"})
_CONTEXT = 4096  # tokens, where config.pbtxt gives none: a long context costs much memory
_CAUSAL = ("ForCausalLM", "LMHeadModel")
_SCORES = "ForSequenceClassification"
MEGAPIXELS = 50  # up to 0.8 GB while an image is decoded and resized
MEGAPIXELS_UNRESIZED = 4  # all pixels reach the model then, whose layers need much more for each
_MOST_MEGAPIXELS = 89  # Pillow warns of larger images
_IMAGES_AT_ONCE = 16
_SPEECH = "WhisperForConditionalGeneration"


@dataclass(frozen=True)
class Settings:
    """How a model runs.

    task        one of TASKS
    context     tokens of one generation, prompt and answer together; or of one text
    slots       generations, or requests, at once
    threads     threads that compute
    batch       tokens of prompts that are computed between two tokens of the running generations; for other
                tasks, tokens of the texts, or images, that are computed at once
    device      "cpu", "cuda" or "cuda:1"; "" for a GPU if there is one, else "cpu"
    dtype       datatype of the weights; "" for that of the files on GPUs, and for float32 on the CPU
    template    chat template
    trust       whether Python code in the folder may run
    end_tokens  tokens that end a text
    sampling    sampling parameters where a request gives none
    pooling     how an embedding is made of those of the tokens
    labels      names of the classes
    images      whether the task "classify" reads images
    sound       whether the task "generate" reads sound
    most_pixels pixels of one image; 0 leaves it to the engine, which knows whether images are resized
    """

    task: str = "generate"
    context: int = _CONTEXT
    slots: int = 16
    threads: int = 1
    batch: int = 512
    device: str = ""
    dtype: str = ""
    template: str = ""
    trust: bool = False
    end_tokens: frozenset[int] = frozenset()
    sampling: Mapping[str, float] = field(default_factory=dict)
    pooling: Pooling = field(default_factory=Pooling)
    labels: tuple[str, ...] = ()
    images: bool = False
    sound: bool = False
    most_pixels: int = 0

    @property
    def supports(self) -> frozenset[str]:
        """What a model with these settings supports, as the names of Engine.supports."""
        if self.task == "transcribe":
            return TRANSCRIBES
        if self.task != "generate":
            return EMBEDS if self.task == "embed" else frozenset()
        return GENERATES | ({"audio"} if self.sound else set())


def description_of(settings: Settings, folder: Folder) -> Description:
    """Return what a frontend must know of a model."""
    return Description(
        task=settings.task,
        context=settings.context,
        template=settings.template,
        bos=folder.token("bos"),
        eos=folder.token("eos"),
        supports=settings.supports,
    )


def settings_of(config: ModelConfig, folder: Folder) -> Settings:
    """Return the settings of a model. Raises CoreError(INVALID) that names the parameter."""
    values = _Values(config)
    task = _task(values, folder)
    trained = folder.trained_context if task == "generate" else folder.longest_text
    trained = trained or 2**20
    return Settings(
        task=task,
        context=values.number("context", min(_CONTEXT, trained), 16, trained),
        slots=values.number("slots", 16, 1, 1024),
        threads=values.number("threads", max(1, len(cores()) // 2), 1, 1024),
        batch=values.number("batch", _IMAGES_AT_ONCE if folder.reads_images else 512, 1, 65536),
        device=_device(values),
        dtype=values.choice("dtype", DTYPES),
        template=values.text("chat_template") or folder.template,
        trust=values.choice("trust_remote_code", ("false", "true")) == "true",
        end_tokens=folder.end_tokens,
        sampling=folder.sampling,
        pooling=_pooling(values, folder) if task == "embed" else Pooling(),
        labels=folder.labels if task == "classify" else (),
        images=folder.reads_images,
        sound=folder.reads_sound and task == "generate",
        most_pixels=values.number("max_megapixels", 0, 1, _MOST_MEGAPIXELS) * 1_000_000,
    )


class _Values:
    """Values of the parameters of a model."""

    def __init__(self, config: ModelConfig):
        self._model = config.name
        self._values = {name: entry.string_value for name, entry in config.parameters.items()}

    def text(self, name: str) -> str:
        return self._values.get(name, "")

    def number(self, name: str, default: int, low: int, high: int) -> int:
        """Return a whole number; `default` if the parameter is not set or empty.

        Raises CoreError(INVALID) unless it is from `low` to `high`.
        """
        text = self.text(name)
        if not text:
            return default
        readable = text.isascii() and text.isdigit() and len(text) <= 10
        if not readable or not low <= int(text) <= high:
            raise self.wrong(name, f"a number from {low} to {high}")
        return int(text)

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        """Return the parameter's text; "" if it is not set.

        Raises CoreError(INVALID) unless it is one of `choices`.
        """
        text = self.text(name)
        if text and text not in choices:
            raise self.wrong(name, f"one of {', '.join(choices)}")
        return text

    def wrong(self, name: str, expected: str) -> CoreError:
        found = self.text(name)[:80]
        return invalid(
            f"model '{self._model}': parameter '{name}' is '{found}', it must be {expected}"
        )


def _device(values: _Values) -> str:
    text = values.text("device")
    kind, _, number = text.partition(":")
    if text and text != "cpu" and (kind != "cuda" or (number and not number.isdigit())):
        raise values.wrong("device", "'cpu', 'cuda', or a GPU with its number such as 'cuda:1'")
    return text


def _pooling(values: _Values, folder: Folder) -> Pooling:
    found = read_pooling(folder)
    mode = values.choice("pooling", POOLINGS) or found.mode
    normalize = values.choice("normalize", ("false", "true"))
    return Pooling(mode, normalize == "true" if normalize else found.normalize)


def _task(values: _Values, folder: Folder) -> str:
    """Return the parameter `task`; if it is not set, the task of the model's class.

    Raises CoreError(INVALID) for an unknown task, for a class of none of the tasks, and for a task that needs
    another class.
    """
    asked, found = values.choice("task", TASKS), _task_of_class(folder)
    if asked != found and asked in ("rank", "classify"):
        count = "one label" if asked == "rank" else "several labels"
        raise values.wrong(
            "task",
            f"another task: it needs …{_SCORES} with {count}, the folder has {folder.architecture}",
        )
    if asked not in ("", found) and (folder.reads_images or "transcribe" in (asked, found)):
        does = "classifies images" if folder.reads_images else "transcribes"
        needed = "which" if folder.reads_images else f"and {_SPEECH}"
        raise values.wrong(
            "task", f"another task: the folder has {folder.architecture}, {needed} {does}"
        )
    if found == "transcribe" and not (folder.path / PROCESSORS[0]).is_file():
        raise not_found(folder.path / PROCESSORS[0], folder.model)
    if asked or found:
        return asked or found
    raise folder.wrong(
        CONFIG,
        f"has the architecture '{folder.architecture}', and this backend runs …ForCausalLM, …{_SCORES}, "
        f"…{IMAGES[0]}, …Model, {', '.join(SOUNDS)} and {_SPEECH}; set the parameter 'task' in "
        "config.pbtxt to 'generate' or 'embed' if the model can do that",
    )


def _task_of_class(folder: Folder) -> str:
    """Return the task of the model's class, "" for none."""
    architecture = folder.architecture
    if architecture == _SPEECH:
        return "transcribe"
    if folder.reads_images:
        return "classify"
    if architecture.endswith(_SCORES):
        return "rank" if len(folder.labels) == 1 else "classify"
    if (folder.path / "modules.json").is_file() or architecture.endswith("Model"):
        return "generate" if architecture.endswith("LMHeadModel") else "embed"
    return "generate" if architecture.endswith(_CAUSAL) or folder.reads_sound else ""
