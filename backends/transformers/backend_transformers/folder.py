"""The files of a model in the format of Hugging Face, as far as they are JSON. Imports no framework.

config.json, tokenizer_config.json, generation_config.json, … ─► [Folder]
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from core_generate.hugging_face import chat_template, special_token

from core.errors import CoreError, invalid
from core.model_file import check_readable, not_found

CONFIG = "config.json"
WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
PROCESSORS = ("preprocessor_config.json", "processor_config.json")  # how a picture or sound is read
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model")
IMAGES = ("ForImageClassification", "ForImageClassificationWithTeacher")  # ends of classes
SOUNDS = (  # classes that continue texts with sound; what their processors take is alike
    "AudioFlamingo3ForConditionalGeneration",
    "GlmAsrForConditionalGeneration",
    "Qwen2AudioForConditionalGeneration",
)
_LENGTHS = ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length")


class Folder:
    """The folder of a version.

    path    the folder
    model   name of the model, for errors
    config  content of config.json
    Raises CoreError if config.json, the weights, or the files of the tokenizer are missing or unreadable. A
    model that reads images has the file of an image processor in the place of a tokenizer; one that reads
    sound has that of its processor beside it.
    """

    def __init__(self, path: Path, model: str):
        self.path = path
        self.model = model
        if not (path / CONFIG).is_file():
            raise not_found(path / CONFIG, model)
        self.config = self._object(CONFIG)
        weights = next((path / name for name in WEIGHTS if (path / name).is_file()), None)
        if weights is None:
            raise not_found(path / WEIGHTS[0], model)
        check_readable(weights, model)
        needed = PROCESSORS if self.reads_images else TOKENIZERS
        if not any((path / name).is_file() for name in needed):
            raise not_found(path / needed[0], model)
        if self.reads_sound and not any((path / name).is_file() for name in PROCESSORS):
            raise not_found(path / PROCESSORS[0], model)
        self._tokenizer = self._object("tokenizer_config.json")
        self._generation = self._object("generation_config.json")

    def _object(self, name: str) -> dict[str, Any]:
        found = self.read(name, dict)
        return {} if found is None else found

    def read(self, name: str, kind: type) -> Any:
        """Return the content of a JSON file; None if there is no such file.

        kind   dict or list
        Raises CoreError(INVALID) for another content.
        """
        file = self.path / name
        if not file.is_file():
            return None
        check_readable(file, self.model)
        try:
            found = json.loads(file.read_text("utf-8"))
        except (ValueError, RecursionError) as error:
            raise self.wrong(name, f"is no JSON: {error}") from None
        if type(found) is not kind:
            raise self.wrong(name, f"is no JSON {'object' if kind is dict else 'list'}")
        return found

    def wrong(self, file: str, problem: str) -> CoreError:
        """Return the error (INVALID) for a file of this folder."""
        return invalid(f"model '{self.model}': '{self.path / file}' {problem}")

    # what config.json says --------------------------------------------------

    @property
    def architecture(self) -> str:
        """The class of the model, such as LlamaForCausalLM. Raises CoreError(INVALID) if there is none."""
        found = self.config.get("architectures")
        if type(found) is not list or len(found) != 1 or type(found[0]) is not str:
            raise self.wrong(
                CONFIG,
                f"has {json.dumps(found)} as 'architectures', it must have one, such as "
                '["LlamaForCausalLM"]',
            )
        return found[0]

    @property
    def reads_images(self) -> bool:
        """Whether the model classifies images. Raises as `architecture`."""
        return self.architecture.endswith(IMAGES)

    @property
    def reads_sound(self) -> bool:
        """Whether the model continues texts with sound. Raises as `architecture`."""
        return self.architecture in SOUNDS

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the classes, in the order of their numbers; two if config.json has none."""
        found = self.config.get("id2label")
        if type(found) is dict and found:
            try:
                return tuple(str(found[key]) for key in sorted(found, key=int))
            except ValueError:
                raise self.wrong(CONFIG, "has a key in 'id2label' that is no number") from None
        count = self.config.get("num_labels", 2)
        return tuple(f"LABEL_{i}" for i in range(count if type(count) is int else 2))

    @property
    def trained_context(self) -> int:
        """Tokens of the longest text that the model can read; 0 if config.json does not say it."""
        text = self.config.get("text_config")
        for values in (self.config, text if type(text) is dict else {}):
            for name in _LENGTHS:
                if type(found := values.get(name)) is int and found > 0:
                    return found
        return 0

    # what the other files say -----------------------------------------------

    @property
    def longest_text(self) -> int:
        """Tokens of the longest text of which the model makes an embedding or scores; 0 if unknown."""
        limits = [
            self.trained_context,
            self._tokenizer.get("model_max_length"),
            self._object("sentence_bert_config.json").get("max_seq_length"),
        ]
        # A model_max_length of 10³⁰ stands for no limit.
        return min((each for each in limits if type(each) is int and 0 < each < 2**31), default=0)

    def token(self, name: str) -> str:
        """Return the text of the token "bos" or "eos"; "" if there is none."""
        return special_token(self._tokenizer, name)

    @property
    def template(self) -> str:
        """The chat template; the one named "default" if there are several, and "" if there is none."""
        file = self.path / "chat_template.jinja"
        if file.is_file():
            check_readable(file, self.model)
            return file.read_text("utf-8")
        if self.reads_sound:  # else there is no processor, whose file it is
            found = self._object("chat_template.json").get("chat_template")
            if type(found) is str:
                return found
        return chat_template(self._tokenizer)

    @property
    def sampling(self) -> dict[str, float]:
        """Sampling parameters of generation_config.json: those that the model's authors recommend."""
        names = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")
        values: dict[str, Any] = {name: self._generation.get(name) for name in names}
        return {name: each for name, each in values.items() if type(each) in (int, float)}

    @property
    def end_tokens(self) -> frozenset[int]:
        """Tokens that end a text, of generation_config.json or config.json."""
        found = self._generation.get("eos_token_id", self.config.get("eos_token_id"))
        listed = found if type(found) is list else [found]
        return frozenset(each for each in listed if type(each) is int)
