"""What the files of a model in the format of Hugging Face say. Imports no part of vLLM.

folder, or name at Hugging Face ─► [Folder] ─► architecture, context, chat template, special tokens
"""

from __future__ import annotations

import importlib.util
import logging
from functools import cached_property
from pathlib import Path
from typing import Any

from core_generate.hugging_face import chat_template, special_token

from backend_vllm.arguments import CONFIG, read_object
from core.errors import CoreError, invalid
from core.model_file import check_readable, not_found

logger = logging.getLogger("core")

_TOKENIZER = "tokenizer_config.json"
_TEMPLATE = "chat_template.jinja"
_MODULES = "modules.json"  # of sentence-transformers
_WEIGHTS = ("*.safetensors", "*.bin", "*.pt", "*.gguf")
_LENGTHS = ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length")
# Forms of scaled positions with which max_position_embeddings is the whole context.
_WHOLE = ("default", "llama3", "longrope", "su", "mrope")


class Folder:
    """The files of a model: of a folder, or of a name at Hugging Face.

    place      absolute path of a folder or file, or a name such as "owner/name"
    model      name of the model in the repository, for errors
    revision   branch, tag or commit of a name; "" for the default
    download   whether files of a name may be downloaded; else only those count that are on this machine

    vLLM downloads a model that a name stands for. Here only small files are downloaded with it, to know the
    chat template before the load; what cannot be had counts as absent.
    Each member that reads a file raises CoreError(INVALID) for a text that cannot be a name.
    """

    def __init__(self, place: str, model: str, revision: str = "", download: bool = True):
        self.model = model
        self.path = Path(place) if Path(place).is_absolute() else None
        self._name = place
        self._revision = revision or None
        self._download = download
        if self.path is not None and self.path.is_dir() and not (self.path / CONFIG).is_file():
            raise not_found(self.path / CONFIG, model)

    @property
    def is_known(self) -> bool:
        """Whether its config.json is on this machine, or the model is one file of weights."""
        return self._file(CONFIG) is not None or (self.path is not None and self.path.is_file())

    @cached_property
    def config(self) -> dict[str, Any]:
        """Content of config.json; {} if it is not known."""
        return self._object(CONFIG)

    @property
    def architecture(self) -> str:
        """The class of the model, such as LlamaForCausalLM; "" if it is not known."""
        found = self.config.get("architectures")
        return str(found[0]) if type(found) is list and found else ""

    @property
    def labels(self) -> int:
        """Number of classes of a model that classifies."""
        labels = self.config.get("id2label")
        count = self.config.get("num_labels", 2)
        return len(labels) if type(labels) is dict else count if type(count) is int else 2

    @property
    def embeds(self) -> bool:
        """Whether the folder is one of sentence-transformers."""
        return self._file(_MODULES) is not None

    @property
    def context(self) -> int:
        """Tokens of the longest text; 0 if it is not known."""
        text = self.config.get("text_config")
        values = {**self.config, **(text if type(text) is dict else {})}
        scaling = values.get("rope_scaling") or values.get("rope_parameters") or {}
        kind = scaling.get("rope_type", scaling.get("type", "default"))
        if kind not in _WHOLE:
            return 0
        return next((each for each in map(values.get, _LENGTHS) if type(each) is int), 0)

    @property
    def template(self) -> str:
        """The chat template; the one named "default" if there are several, and "" if there is none."""
        if (file := self._file(_TEMPLATE)) is not None:
            return file.read_text("utf-8")
        return chat_template(self._tokenizer)

    def token(self, name: str) -> str:
        """Return the text of the token "bos" or "eos"; "" if there is none."""
        return special_token(self._tokenizer, name)

    @property
    def byte_size(self) -> int:
        """Bytes of the files of weights, once they are on this machine; 0 before."""
        folder = self.path
        if folder is None:
            config = self._file(CONFIG)
            folder = None if config is None else config.parent
        if folder is None:
            return 0
        if folder.is_file():
            return folder.stat().st_size
        files = (sorted(folder.glob(pattern)) for pattern in _WEIGHTS)
        return sum(each.stat().st_size for each in next(filter(None, files), []))

    def wrong(self, problem: str) -> CoreError:
        """Return the error (INVALID) for a model of this folder."""
        return invalid(f"model '{self.model}': '{self._name}' {problem}")

    @cached_property
    def _tokenizer(self) -> dict[str, Any]:
        return self._object(_TOKENIZER)

    def _object(self, name: str) -> dict[str, Any]:
        file = self._file(name)
        return {} if file is None else read_object(file, self.model)

    def _file(self, name: str) -> Path | None:
        """Return a file; None if it does not exist, or cannot be had."""
        if self.path is None:
            return self._cached(name)
        file = self.path / name
        if not file.is_file():
            return None
        check_readable(file, self.model)
        return file

    def _cached(self, name: str) -> Path | None:
        """Return a file from the cache of huggingface_hub, which downloads it if it may."""
        if importlib.util.find_spec("huggingface_hub") is None:
            return None
        from huggingface_hub import hf_hub_download, try_to_load_from_cache

        try:
            known = try_to_load_from_cache(self._name, name, revision=self._revision)
        except ValueError:
            if ":" in self._name:  # a form that only vLLM knows, such as s3://…
                return None
            raise self.wrong(
                "is neither a folder beside model.json nor a name at Hugging Face such as 'owner/name'"
            ) from None
        if known is not None:  # a path, or a mark that the file does not exist
            return Path(known) if isinstance(known, str) else None
        if not self._download:
            return None
        try:
            return Path(hf_hub_download(self._name, name, revision=self._revision))
        except Exception as error:  # no network, file or permission: vLLM reports it at the load
            logger.debug("model '%s': '%s' of '%s': %s", self.model, name, self._name, error)
            return None
