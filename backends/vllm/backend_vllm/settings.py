"""How a version runs: its model.json, its parameters in config.pbtxt, and what its model's files say.

ModelConfig, folder of the version ─► [settings_of] ─► Settings ─► Description
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from core_generate import Description

from backend_vllm import arguments, installed
from backend_vllm.adapters import read_adapters
from backend_vllm.arguments import Arguments
from backend_vllm.folder import Folder
from backend_vllm.installed import Kinds
from core.config import ModelConfig
from core.errors import CoreError, invalid

PARAMETERS = (
    "ENABLE_VLLM_HEALTH_CHECK",
    "GPU_DEVICE_IDS",
    "REPORT_CUSTOM_METRICS",
    "chat_template",
)
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
# Ends of the names of classes → tasks, in vLLM's order: the first that fits counts.
_TASKS = {
    "ForCausalLM": "generate",
    "ForConditionalGeneration": "generate",
    "ChatModel": "generate",
    "LMHeadModel": "generate",
    "ForTextEncoding": "embed",
    "EmbeddingModel": "embed",
    "ForSequenceClassification": "rank",
    "ForRewardModeling": "embed",
    "RewardModel": "embed",
    "Model": "embed",
}
_CONVERTS = {"embed": "embed", "classify": "rank"}


@dataclass(frozen=True)
class Settings:
    """How a version runs.

    task        "generate", "embed" or "rank"
    arguments   of vLLM's engine
    folder      the files of its model
    context     tokens of prompt and answer together; 0 if only vLLM knows it
    template    chat template
    adapters    name of a LoRA adapter → its folder, or its name at Hugging Face
    reports     whether the metrics `vllm:…` are shown
    """

    task: str
    arguments: Arguments
    folder: Folder
    context: int = 0
    template: str = ""
    adapters: Mapping[str, str] = field(default_factory=dict)
    reports: bool = False

    @property
    def supports(self) -> frozenset[str]:
        """What a model with these settings supports, as the names of Engine.supports."""
        if self.task != "generate":
            return EMBEDS if self.task == "embed" else frozenset()
        return GENERATES | ({"adapter"} if self.adapters else set())


def description_of(settings: Settings) -> Description:
    """Return what a frontend must know of a model."""
    return Description(
        task=settings.task,
        context=settings.context,
        template=settings.template,
        bos=settings.folder.token("bos"),
        eos=settings.folder.token("eos"),
        supports=settings.supports,
        adapters=tuple(settings.adapters),
    )


def settings_of(
    config: ModelConfig,
    path: Path,
    known: Mapping[str, Kinds] | None = None,
    download: bool = True,
) -> Settings:
    """Return the settings of a version. Imports no part of vLLM.

    path       folder of the version
    known      arguments of vLLM's engine; None for those of the vLLM that is installed
    download   whether small files of a model at Hugging Face may be downloaded
    Raises CoreError that names the file and key, or the parameter, that is wrong.
    """
    file = path / (config.default_model_filename or arguments.FILE)
    if known is None:
        known = installed.engine_arguments(config.name)
    found = arguments.read_arguments(file, config.name, known)
    if devices := _devices(config, found):
        found.setdefault("device_ids", devices)
    _flag(config, "ENABLE_VLLM_HEALTH_CHECK")  # the health of vLLM is always checked
    folder = Folder(found["model"], config.name, str(found.get("revision") or ""), download)
    most = found.get("max_model_len")
    return Settings(
        task=_task(found, folder),
        arguments=found,
        folder=folder,
        context=most if type(most) is int and most > 0 else folder.context,
        template=_text(config, "chat_template") or folder.template,
        adapters=read_adapters(path, config.name, found),
        reports=_flag(config, "REPORT_CUSTOM_METRICS") and not found.get("disable_log_stats"),
    )


def _text(config: ModelConfig, name: str) -> str:
    entries = config.parameters
    return str(entries[name].string_value) if name in entries else ""


def _flag(config: ModelConfig, name: str) -> bool:
    text = _text(config, name)
    if text.lower() not in ("", "true", "false"):
        raise _wrong(config, name, "'true' or 'false'")
    return text.lower() == "true"


def _wrong(config: ModelConfig, name: str, expected: str) -> CoreError:
    found = _text(config, name)[:80]
    return invalid(f"model '{config.name}': parameter '{name}' is '{found}', it must be {expected}")


def _devices(config: ModelConfig, found: Arguments) -> list[int]:
    """Return the numbers of the GPUs on which the model must run; [] leaves them to vLLM.

    They are those of the parameter GPU_DEVICE_IDS, or of an instance group of GPUs.
    Raises CoreError(INVALID) for other texts, and for several parts of a model in a group of GPUs.
    """
    parts = 1
    for name in ("tensor_parallel_size", "pipeline_parallel_size"):
        value = found.get(name)
        parts *= value if type(value) is int else 1
    if text := _text(config, "GPU_DEVICE_IDS"):
        words = [each.strip() for each in text.split(",")]
        if not all(each.isascii() and each.isdigit() for each in words) or len(words) != parts:
            raise _wrong(
                config,
                "GPU_DEVICE_IDS",
                f"{parts} number{'s' if parts > 1 else ''} of GPUs such as "
                f"'{','.join(map(str, range(parts)))}', as model.json has tensor_parallel_size times "
                f"pipeline_parallel_size {parts}",
            )
        return [int(each) for each in words]
    groups = [each for each in config.instance_group if each.kind == each.KIND_GPU]
    if groups and parts > 1:
        raise invalid(
            f"model '{config.name}' has an instance_group of KIND_GPU, which is one GPU, and model.json "
            f"asks for {parts}; write KIND_MODEL, and name the GPUs with the parameter GPU_DEVICE_IDS"
        )
    return [number for each in groups for number in each.gpus]


def _task(found: Arguments, folder: Folder) -> str:
    """Return the task that the arguments `runner` and `convert` or the class of the model decide.

    Raises CoreError(INVALID) for a class of none of the tasks, and for one with several labels.
    """
    architecture = folder.architecture
    task = next(
        (each for end, each in _TASKS.items() if architecture.endswith(end)),
        "" if architecture else "generate",
    )
    if found.get("convert") in _CONVERTS:
        task = _CONVERTS[found["convert"]]
    elif found.get("runner") == "generate":
        task = "generate"
    elif found.get("runner") == "pooling" or folder.embeds:
        task = task if task == "rank" else "embed"
    if not task:
        raise folder.wrong(
            f"has the architecture '{architecture}', which is of none of the tasks generate, embed and "
            "rank; set 'runner' and 'convert' in model.json if vLLM can do one of them with it"
        )
    if task == "rank" and folder.labels != 1:
        raise folder.wrong(
            f"sorts texts into {folder.labels} classes, and this backend only has models with one label, "
            "which rank; take backend-transformers for classes"
        )
    return task
