"""What the files beside an encoder say: its tokenizer, how embeddings are made, and the longest text.

tokenizer.json, modules.json, 1_Pooling/config.json, parameters of config.pbtxt ─► [EncoderFiles]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
from core_generate.hugging_face import POOLINGS, pooling_mode

from core.errors import invalid, unsupported

if TYPE_CHECKING:
    from tokenizers import Tokenizer

TOKENIZER = "tokenizer.json"
# Types of models that count positions from the number behind that of the padding token.
_BEHIND_PADDING = ("camembert", "roberta", "xlm-roberta")


@dataclass(frozen=True)
class EncoderFiles:
    """How texts become embeddings.

    vocabulary  number behind that of the last token
    pad         token that fills up shorter texts
    pooling     one of POOLINGS
    normalize   whether the length of an embedding becomes 1
    longest     tokens of a text at most; 0 if unknown
    """

    tokenizer: Tokenizer
    vocabulary: int
    pad: int
    pooling: str
    normalize: bool
    longest: int


def read_encoder(name: str, folders: tuple[Path, ...], written: Mapping[str, str]) -> EncoderFiles:
    """Read the files of a model. May take a tenth of a second; any thread.

    folders   of the version and of the model; a file in the first takes precedence
    written   parameters of the configuration; they take precedence over files
    Raises CoreError(UNSUPPORTED) without the package tokenizers, CoreError(INVALID) for wrong files.
    """
    path = _path(folders, TOKENIZER)
    if path is None:
        raise invalid(
            f"model '{name}' has the inputs of an encoder, but no {TOKENIZER}: put it into {folders[0]}, or "
            "compute embeddings over v2"
        )
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise unsupported(
            f"model '{name}' needs the package tokenizers: pip install tokenizers"
        ) from None
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises Exception itself
        raise invalid(f"model '{name}': {path} cannot be read: {error}") from None
    pad = int((tokenizer.padding or {}).get("pad_id", 0))
    longest = int((tokenizer.truncation or {}).get("max_length", 0))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    files = _Files(name, folders)
    pooling, normalize = files.pooling()
    if "pooling" in written:
        pooling = written["pooling"]
        if pooling not in POOLINGS:
            raise invalid(
                f"model '{name}': the parameter pooling is '{pooling}'; expected one of {POOLINGS}"
            )
    if "normalize" in written:
        normalize = _flag(name, written["normalize"])
    if "max_length" in written:
        longest = _length(name, written["max_length"])
    else:
        longest = min((each for each in (*files.lengths(), longest) if each > 0), default=0)
    vocabulary = 1 + max(tokenizer.get_vocab(with_added_tokens=True).values(), default=-1)
    return EncoderFiles(tokenizer, vocabulary, pad, pooling, normalize, longest)


def _path(folders: tuple[Path, ...], file: str) -> Path | None:
    return next((found for each in folders if (found := each / file).is_file()), None)


def _flag(name: str, text: str) -> bool:
    if text not in ("true", "false"):
        raise invalid(
            f"model '{name}': the parameter normalize is '{text}'; expected true or false"
        )
    return text == "true"


def _length(name: str, text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise invalid(
            f"model '{name}': the parameter max_length is '{text}'; expected a number above 0"
        )
    return int(text)


class _Files:
    """The JSON files in the folders of a model."""

    def __init__(self, name: str, folders: tuple[Path, ...]):
        self._name = name
        self._folders = folders

    def object(self, file: str) -> dict[str, Any]:
        """Return the object in a file; {} without the file."""
        found = self._read(file)
        if type(found) is not dict:
            raise self._wrong(file, "is no JSON object")
        return found

    def lengths(self) -> list[int]:
        """Return the longest texts that the files name, in tokens."""
        config = self.object("config.json")
        positions = config.get("max_position_embeddings")
        if type(positions) is int and config.get("model_type") in _BEHIND_PADDING:
            positions -= 1 + (config.get("pad_token_id") or 0)
        found = (self.object("sentence_bert_config.json").get("max_seq_length"), positions)
        return [each for each in found if type(each) is int]

    def pooling(self) -> tuple[str, bool]:
        """Return the pooling, and whether embeddings are normalized: what modules.json says.

        Without it, that of 1_Pooling/config.json or the mean, normalized.
        """
        modules = self._read("modules.json")
        if not modules:
            return self._mode("1_Pooling/config.json"), True
        if type(modules) is not list or not all(type(each) is dict for each in modules):
            raise self._wrong("modules.json", "is no list of modules")
        mode, normalize = "mean", False
        for each in modules:
            kind = str(each.get("type", "")).rpartition(".")[2]
            if kind == "Pooling":
                mode = self._mode(f"{each.get('path', '')}/config.json")
            elif kind == "Normalize":
                normalize = True
            elif kind not in ("Transformer", "Dropout"):
                raise self._wrong(
                    "modules.json",
                    f"has the module '{kind}'; Transformer, Pooling and Normalize are supported",
                )
        return mode, normalize

    def _mode(self, file: str) -> str:
        values = self.object(file)
        if not values:
            return "mean"
        try:
            return pooling_mode(values)
        except ValueError as error:
            raise self._wrong(file, str(error)) from None

    def _read(self, file: str) -> Any:
        path = _path(self._folders, file)
        if path is None:
            return {}
        try:
            return orjson.loads(path.read_bytes())
        except (OSError, orjson.JSONDecodeError) as error:
            raise self._wrong(file, f"cannot be read: {error}") from None

    def _wrong(self, file: str, problem: str) -> Exception:
        return invalid(f"model '{self._name}': {file} {problem}")
