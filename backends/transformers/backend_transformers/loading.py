"""Loads a model with transformers, and its tokenizer, processor or image processor.

Folder, Settings ─► [load] ─► Loaded
                 └► [load_images] ─► LoadedImages
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import torch
import transformers

from backend_transformers.folder import CONFIG, Folder
from backend_transformers.settings import Settings
from backend_transformers.vocabulary import Vocabulary
from core.errors import CoreError, internal, invalid, unavailable

_CLASSES = {
    "generate": "AutoModelForCausalLM",
    "embed": "AutoModel",
    "rank": "AutoModelForSequenceClassification",
    "classify": "AutoModelForSequenceClassification",
    "transcribe": "AutoModelForSpeechSeq2Seq",
}
_KNOWN_LAYERS = frozenset({"full_attention", "sliding_attention", "attention"})


@dataclass(frozen=True)
class Loaded:
    """A model that is ready to compute.

    module      the model, in its datatype on its device, for inference
    vocabulary  its tokenizer
    logits      length of its logits
    bytes       size of its weights
    processor   what reads texts with sound; None for a model without sound
    """

    module: Any
    vocabulary: Vocabulary
    logits: int
    bytes: int
    processor: Any = None


@dataclass(frozen=True)
class LoadedImages:
    """A model of images that is ready to compute.

    module      the model, in its datatype on its device, for inference
    processor   its image processor, with Pillow and NumPy: PIL's Image → arrays
    bytes       size of its weights
    """

    module: Any
    processor: Any
    bytes: int


# While transformers reads a model, it replaces functions of all its classes. Two reads at once can leave them
# replaced: later models would then lose weights that two of their layers share.
_reading = threading.Lock()

transformers.logging.disable_progress_bar()  # a server has no terminal for it


def load(folder: Folder, settings: Settings) -> Loaded:
    """Return the model of a folder. Takes seconds to minutes.

    Raises CoreError for an architecture that transformers does not have, a model of which this backend cannot
    compute batches, a device that is not there, and files that cannot be read.
    """
    device = device_of(settings, folder)
    config = _read(folder, "its configuration", transformers.AutoConfig, settings)
    if settings.task == "generate":
        _check_layers(folder, config)
    tokenizer = _read(folder, "its tokenizer", transformers.AutoTokenizer, settings)
    if getattr(tokenizer, "backend_tokenizer", None) is None:
        raise folder.wrong(
            "tokenizer.json", "is missing: this backend needs the tokenizer's fast form"
        )
    processor = None
    if settings.sound:
        processor = _read(folder, "its processor", transformers.AutoProcessor, settings)
    module = _module(folder, settings, config, device)
    if settings.task == "generate" and getattr(module, "_is_stateful", False):
        raise _unsupported(folder, "a state in the place of a cache of keys and values")
    if (
        settings.task != "generate" and module.config.pad_token_id is None
    ):  # models that score texts search for the padding
        module.config.pad_token_id = tokenizer.pad_token_id or 0
    return Loaded(
        module,
        Vocabulary(tokenizer),
        int(config.get_text_config(decoder=True).vocab_size),
        _size(module),
        processor,
    )


def load_images(folder: Folder, settings: Settings) -> LoadedImages:
    """Return the model of a folder whose model reads images. Takes seconds. Raises as `load`."""
    device = device_of(settings, folder)
    config = _read(folder, "its configuration", transformers.AutoConfig, settings)
    # Most models were trained with images that Pillow had resized; torchvision's pixels differ a little.
    processor = _read(
        folder, "its image processor", transformers.AutoImageProcessor, settings, backend="pil"
    )
    module = _module(folder, settings, config, device)
    return LoadedImages(module, processor, _size(module))


def _module(folder: Folder, settings: Settings, config: Any, device: Any) -> Any:
    """Return the model on its device, for inference. Raises CoreError if the files lack weights."""
    kind = _CLASSES[settings.task]
    if settings.images:
        kind = "AutoModelForImageClassification"
    elif settings.sound:  # no class of transformers finds them all
        kind = folder.architecture
    module, report = _read(
        folder,
        "the model",
        getattr(transformers, kind),
        settings,
        config=config,
        dtype=getattr(torch, settings.dtype) if settings.dtype else _dtype(device),
        use_safetensors=True,
        output_loading_info=True,
    )
    # The pooler of BERT is of no task here; files that were written for another task lack it.
    if missing := sorted(each for each in report["missing_keys"] if not each.startswith("pooler.")):
        raise folder.wrong(
            "model.safetensors",
            f"lacks {len(missing)} weights of the class {type(module).__name__}, such as '{missing[0]}'",
        )
    return module.to(device).eval()


def _size(module: Any) -> int:
    """Return the bytes of the weights."""
    weights = [*module.parameters(), *module.buffers()]
    return sum(each.numel() * each.element_size() for each in weights)


def device_of(settings: Settings, folder: Folder) -> Any:
    """Return the device of a model. Raises CoreError(UNAVAILABLE) if torch does not have it."""
    text = settings.device or ("cuda" if torch.cuda.is_available() else "cpu")
    device = torch.device(text)
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise unavailable(
            f"model '{folder.model}': parameter 'device' is '{text}', torch {torch.__version__} has "
            f"{torch.cuda.device_count()} GPUs"
        )
    return device


def _dtype(device: Any) -> Any:
    """Return the datatype for weights: that of the files on GPUs. On CPUs, most are slower in 16 bits."""
    return "auto" if device.type == "cuda" else torch.float32


def _read(folder: Folder, what: str, kind: Any, settings: Settings, **more: Any) -> Any:
    """Return what a class of transformers reads from the folder. Raises CoreError with its reason."""
    try:
        with _reading:
            return kind.from_pretrained(
                str(folder.path), local_files_only=True, trust_remote_code=settings.trust, **more
            )
    except CoreError:
        raise
    except Exception as error:
        raise _explained(folder, what, error, settings) from error


def _explained(folder: Folder, what: str, error: Exception, settings: Settings) -> CoreError:
    kind = folder.config.get("model_type")
    if "auto_map" in folder.config and not settings.trust:
        return invalid(
            f"model '{folder.model}': the model has Python code of its own, which does not run unless the "
            "parameter 'trust_remote_code' in config.pbtxt is 'true'; read that code first"
        )
    if kind not in transformers.CONFIG_MAPPING:
        return folder.wrong(
            CONFIG,
            f"has the model_type {kind!r}, which transformers {transformers.__version__} does not have; "
            "install a newer transformers, or check the file",
        )
    reason = " ".join(str(error).split())[:500]
    return internal(
        f"model '{folder.model}': transformers {transformers.__version__} cannot read {what} in "
        f"'{folder.path}': {type(error).__name__}: {reason}"
    )


def _check_layers(folder: Folder, config: Any) -> None:
    """Raise CoreError(INVALID) for layers whose cache is no list of keys and values."""
    layers = getattr(config.get_text_config(decoder=True), "layer_types", None) or ()
    if unknown := sorted({str(each) for each in layers} - _KNOWN_LAYERS):
        raise _unsupported(folder, f"layers of the type {', '.join(unknown)}")


def _unsupported(folder: Folder, what: str) -> CoreError:
    return folder.wrong(
        CONFIG,
        f"is of a model with {what}; this backend batches models with attention over all tokens or over a "
        "window of them",
    )
