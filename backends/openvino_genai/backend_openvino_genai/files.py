"""The files of a version, and what they say about the model without its weights.

folder ─► [find_files] ─► ModelFiles ─► [read_facts] ─► Facts ─► Description
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import orjson
from core_generate.gguf import read_metadata
from core_generate.hugging_face import chat_template, special_token

from core.config import ModelConfig
from core.errors import invalid
from core.model_file import check_readable, not_found

MODEL = "openvino_model.xml"
TOKENIZER = "openvino_tokenizer.xml"
ENCODER, DECODER = "openvino_encoder_model.xml", "openvino_decoder_model.xml"  # of Whisper
NEEDED = (MODEL, "openvino_model.bin", TOKENIZER, "openvino_detokenizer.xml")
GGUF = "model.gguf"
_WHISPER = "WhisperForConditionalGeneration"
# By the ends of classes of transformers; the first that fits counts.
_TASKS = {
    "LMHeadModel": "generate",
    "Model": "embed",
    "ForSequenceClassification": "rank",
    _WHISPER: "transcribe",
}
_CONTEXT = 4096  # tokens, where the files name no context


@dataclass(frozen=True)
class ModelFiles:
    """The files of a version.

    path   what OpenVINO GenAI loads: a folder, or a GGUF file
    size   bytes of the weights
    """

    path: Path
    size: int

    @property
    def is_gguf(self) -> bool:
        return self.path.suffix == ".gguf"


@dataclass(frozen=True)
class Facts:
    """What the files say.

    context    tokens of one generation in the training
    template   chat template in Jinja; "" for none
    bos, eos   texts of the tokens that begin and end a text; "" for none
    task       "generate", "embed", "rank" or "transcribe"
    """

    context: int
    template: str = ""
    bos: str = ""
    eos: str = ""
    task: str = "generate"


def find_files(config: ModelConfig, folder: Path) -> ModelFiles:
    """Return the files of a version: a GGUF file, or the folder if it holds those of OpenVINO GenAI.

    Raises CoreError if a file is missing or cannot be read, and for a file of another format.
    """
    named = config.default_model_filename
    if named in NEEDED:  # core writes the file of the entry point core.formats
        named = ""
    if named and not named.endswith(".gguf"):
        raise invalid(
            f"model '{config.name}': default_model_filename is '{named}', it must be a GGUF file; the "
            f"files of a folder of OpenVINO GenAI have fixed names: {', '.join(NEEDED)}"
        )
    if named or ((folder / GGUF).is_file() and not (folder / MODEL).is_file()):
        path = folder / (named or GGUF)
        if not path.is_file():
            raise not_found(path, config.name)
        check_readable(path, config.name)
        return ModelFiles(path, path.stat().st_size)
    whisper = (folder / ENCODER).is_file()
    for each in (ENCODER, DECODER, *NEEDED[2:]) if whisper else NEEDED:
        if not (folder / each).is_file():
            raise not_found(folder / each, config.name)
        check_readable(folder / each, config.name)
    parts = [ENCODER, DECODER] if whisper else [MODEL]
    weights = [(folder / each).with_suffix(".bin") for each in parts]
    return ModelFiles(folder, sum(each.stat().st_size for each in weights if each.is_file()))


def read_facts(files: ModelFiles) -> Facts:
    """Return what the files say. Raises CoreError(INVALID) for a damaged file."""
    return _of_gguf(files.path) if files.is_gguf else _of_folder(files.path)


def _of_gguf(path: Path) -> Facts:
    metadata = read_metadata(path)
    return Facts(
        metadata.number("context_length") or _CONTEXT,
        str(metadata.values.get("tokenizer.chat_template", "")),
        metadata.token("bos"),
        metadata.token("eos"),
    )


def _of_folder(folder: Path) -> Facts:
    config = _json(folder / "config.json")
    text_config = config.get("text_config")
    for each in (config, text_config if isinstance(text_config, dict) else {}):
        context = each.get("max_position_embeddings") or each.get("n_positions")
        if isinstance(context, int) and context > 0:
            break
    else:
        context = _CONTEXT
    tokenizer = _json(folder / "tokenizer_config.json")
    return Facts(
        context,
        _template(folder, tokenizer),
        special_token(tokenizer, "bos"),
        special_token(tokenizer, "eos"),
        _task(config),
    )


def _task(config: dict[str, Any]) -> str:
    """Return the task of the class of transformers that config.json names; "generate" by default."""
    names = config.get("architectures")
    for each in names if isinstance(names, list) else ():
        for end, task in _TASKS.items():
            if str(each).endswith(end):
                return task
    return "generate"


def _template(folder: Path, tokenizer: dict[str, Any]) -> str:
    """Return the chat template of a folder: of its own file, tokenizer_config.json, or the tokenizer."""
    alone = folder / "chat_template.jinja"
    if alone.is_file():
        return alone.read_text(errors="replace")
    return chat_template(tokenizer) or _of_tokenizer(folder / TOKENIZER)


def _of_tokenizer(path: Path) -> str:
    """Return the chat template that the conversion of the tokenizer has kept in its XML; "" for none."""
    try:
        for _, element in ElementTree.iterparse(path):
            if element.tag == "chat_template":
                return element.get("value", "")
            if element.tag in ("layer", "edge"):
                element.clear()
    except ElementTree.ParseError as error:
        raise invalid(f"'{path}' is damaged: {error}; export the model again") from None
    return ""


def _json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        found = orjson.loads(path.read_bytes())
    except ValueError as error:
        raise invalid(f"'{path}' is no JSON: {error}; export the model again") from None
    return found if isinstance(found, dict) else {}
