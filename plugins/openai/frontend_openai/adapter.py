"""TextModel: how one model version takes prompts. The names of its tensors say it.

sampling_parameters there   our engines and vLLM's backend: all fields in one JSON object
else                        each field that has an input of its name, as TensorRT-LLM's models have;
                            fields that the parameter `supports` of the configuration lists become
                            request parameters
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson

from core.config import Signature
from core.dtypes import BYTES
from core.errors import invalid
from core.request import InferenceRequest
from core.tensor import Tensor
from frontend_openai.engine_info import GENERATE, EngineInfo
from frontend_openai.errors import FieldError, wrong
from frontend_openai.guides import GUIDE, GUIDE_TYPE, GUIDES, guide_of
from frontend_openai.request_parts import copy_of, element, shape_of
from frontend_openai.sampling import SamplingFields

TEXT, TOKENS, IMAGES, AUDIO = "text_input", "prompt_token_ids", "image", "audio"
MESSAGES, TOOLS = "messages", "tools"
SAMPLING, STREAM, WITHOUT_PROMPT = "sampling_parameters", "stream", "exclude_input_in_output"
_OUTPUT = "text_output"
_LOG_PROBS, _SCORE = "return_log_probs", "cum_log_probs"  # input and output of TensorRT-LLM

# Field → the name that an engine's `supports` has for it, where they differ.
_ABILITIES = {
    "stop_token_ids": "stop_tokens",
    "lora_name": "adapter",
    "image": "images",
    "json": "schema",
    "json_object": "schema",
    "choice": "choices",
}
_ALWAYS = {"max_tokens", "stop"}  # every engine has them
# Field → other names of its input.
_INPUTS = {"stop": ("stop", "stop_words"), "seed": ("seed", "random_seed")}
_MOST_SUFFIX = 128 * 1024  # characters: each choice has its own copy
_MOST_TOKENS = 16  # for a model that needs a number: Triton's default
# Inputs of fields, which a model may need: clients then send them.
_FIELD_INPUTS = {
    *("max_tokens", "temperature", "top_p", "top_k", "min_p", "seed", "random_seed"),
    *("frequency_penalty", "presence_penalty", "repetition_penalty", "min_tokens"),
}
_NEUTRAL = {"temperature": 1.0, "top_p": 1.0}  # clients often send them; they ask for nothing


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a model continues: text, or tokens of its vocabulary."""

    text: str = ""
    tokens: Sequence[int] = ()
    images: Sequence[bytes] = ()
    audio: Sequence[bytes] = ()
    messages: bytes = b""  # of a chat, as JSON; for models with an input of that name
    tools: bytes = b""  # as JSON; for models with an input of that name
    suffix: str | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """What the responses must have beside the text.

    priority   level of the requests in the queue of the model, 0 for its default
    """

    stream: bool = False
    usage: bool = False
    logprobs: bool = False
    score: bool = False
    priority: int = 0


class TextModel:
    """One model version. Raises CoreError(INVALID) in its constructor if these routes cannot use it."""

    def __init__(self, signature: Signature, info: EngineInfo):
        self.signature = signature
        self.info = info
        self._inputs = signature.inputs
        self._has_json = SAMPLING in self._inputs
        # Whether it gives the score of a text as TensorRT-LLM's models do.
        score = signature.outputs.get(_SCORE)
        has_score = score is not None and score.dtype.numpy.kind == "f"
        self._scores = _LOG_PROBS in self._inputs and has_score
        if info.task != GENERATE:
            raise invalid(
                f"model '{signature.name}' does not generate text: its task is {info.task}"
            )
        self.output = _one_text(signature, "output", _OUTPUT, signature.outputs)
        texts = {name: spec for name, spec in self._inputs.items() if name not in _KNOWN}
        needed = {name: spec for name, spec in texts.items() if not spec.optional}
        # Whether the backend reports the tokens by core.costs; known after its first request.
        self.reports_cost = False
        self.takes_messages = MESSAGES in self._inputs
        self.takes_tools = self.takes_messages and TOOLS in self._inputs
        self._text = MESSAGES
        if TEXT in texts or not self.takes_messages:
            self._text = _one_text(signature, "input", TEXT, needed or texts)
        most = self._inputs.get("max_tokens")
        self._needs_most = most is not None and not most.optional
        others = [name for name in needed if name != self._text and name not in _FIELD_INPUTS]
        if others:
            raise invalid(
                f"model '{signature.name}' needs the inputs {', '.join(others)}, which are no part of a chat "
                "or a completion; make them optional, or call it over v2"
            )

    @property
    def _any(self) -> bool:
        """Return whether the model's abilities are unknown because it is vLLM's, which checks them itself."""
        return self._has_json and self.info.supports is None

    def able(self, name: str) -> bool:
        """Return whether the model takes a field of SamplingFields or a part of a prompt."""
        ability = _ABILITIES.get(name, name)
        if self.info.is_engine and ability in _ALWAYS:
            return True
        if self.info.supports is not None and ability in self.info.supports:
            return True
        return self._any or (not self._has_json and self._input_of(name) is not None)

    def check(self, prompt: Prompt, sampling: SamplingFields) -> None:
        """Raise FieldError for the first thing that the model cannot do; drop fields that ask for nothing."""
        for name, value in tuple(sampling.values.items()):
            inner = next(iter(value)) if name == "structured_outputs" else name
            if self.able(inner) or (inner in GUIDES and self._guides):
                continue
            if name == "logprobs" and self._scores and sampling.sources[name] == "best_of":
                del sampling.values[name]  # best_of needs the score alone
                continue
            if name not in sampling.sources or _NEUTRAL.get(name) == value:
                del sampling.values[name]
                continue
            if name == "logprobs" and _LOG_PROBS in self._inputs:
                source = sampling.sources[name]
                what = "its log probabilities come without the texts of their tokens"
                if source == "best_of":
                    what = f"it needs an output '{_SCORE}' of floating-point numbers"
                raise self._unable(source, f"this: {what}")
            raise self._unable(sampling.sources[name])
        if prompt.tokens and TOKENS not in self._inputs:
            raise self._unable("prompt", "prompts of tokens")
        self._check_files(prompt.images, IMAGES, "images")
        self._check_files(prompt.audio, AUDIO, "sound")
        if prompt.suffix and not (self.info.is_engine and self.able("suffix")):
            raise self._unable("suffix")
        if prompt.suffix and len(prompt.suffix) > _MOST_SUFFIX:
            raise wrong(
                "suffix", f"{len(prompt.suffix)} characters; at most {_MOST_SUFFIX} are accepted"
            )
        if prompt.suffix and prompt.tokens:
            raise wrong("suffix", "it follows a prompt of text, and this prompt has tokens")

    def _check_files(self, files: Sequence[bytes], name: str, what: str) -> None:
        """Raise FieldError if the files of a chat reach the model neither by an input nor in its messages."""
        if not files:
            return
        if not self._takes_files(name):
            if self.takes_messages:
                return
            raise self._unable("messages", what)
        if not self.able(name):
            raise self._unable("messages", what)
        dims = self._inputs[name].dims
        if min(dims, default=0) >= 0 and len(files) != math.prod(dims):
            raise wrong(
                "messages",
                f"model '{self.signature.name}' takes {math.prod(dims)} files in its input '{name}', the "
                f"messages have {len(files)}",
            )

    def _takes_files(self, name: str) -> bool:
        """Return whether the model has an input for files of a chat."""
        return name in self._inputs and self._inputs[name].dtype is BYTES

    def _unable(self, param: str, what: str = "this") -> FieldError:
        return wrong(param, f"model '{self.signature.name}' does not support {what}", "unsupported")

    @property
    def _guides(self) -> bool:
        return GUIDE in self._inputs

    def requests(
        self, prompt: Prompt, samplings: Iterable[SamplingFields], asked: Asked
    ) -> list[InferenceRequest]:
        """Return a request for each choice; `check` has accepted all. They share the bytes of the prompt.

        Choices that follow each other with the same object in `samplings` also share its bytes.
        """
        found: list[InferenceRequest] = []
        of_prompt: dict[str, Tensor] = {}
        before: SamplingFields | None = None
        for sampling in samplings:
            of_prompt = of_prompt or self._of_prompt(prompt)
            if sampling is before:
                found.append(copy_of(found[-1]))
            else:
                found.append(self._request(of_prompt, prompt.suffix, sampling, asked))
            before = sampling
        return found

    def _of_prompt(self, prompt: Prompt) -> dict[str, Tensor]:
        inputs: dict[str, Tensor] = {}
        if prompt.tokens:
            inputs[TOKENS] = self._tensor(TOKENS, prompt.tokens)
        elif self._text == MESSAGES and not prompt.messages:
            raise invalid(
                f"model '{self.signature.name}' takes the messages of a chat, not a prompt"
            )
        else:
            text = prompt.messages if self._text == MESSAGES else prompt.text.encode()
            inputs[self._text] = self._tensor(self._text, [text])
        if prompt.messages and self.takes_messages:
            inputs[MESSAGES] = self._tensor(MESSAGES, [prompt.messages])
        if prompt.tools:
            inputs[TOOLS] = self._tensor(TOOLS, [prompt.tools])
        if prompt.images and self._takes_files(IMAGES):
            files = prompt.images if self.info.is_engine else map(base64.b64encode, prompt.images)
            inputs[IMAGES] = self._tensor(IMAGES, list(files))
        if prompt.audio and self._takes_files(AUDIO):
            inputs[AUDIO] = self._tensor(AUDIO, list(prompt.audio))
        return inputs

    def _request(
        self,
        of_prompt: Mapping[str, Tensor],
        suffix: str | None,
        sampling: SamplingFields,
        asked: Asked,
    ) -> InferenceRequest:
        # A tensor belongs to one request: each gets its own, over the same bytes.
        inputs = {name: tensor.renamed(name) for name, tensor in of_prompt.items()}
        request = InferenceRequest(
            self.signature.name,
            inputs,
            model_version=self.signature.version,
            priority=asked.priority,
        )
        counts = asked.usage and not self.reports_cost
        for name, wanted in (
            (STREAM, asked.stream),
            (WITHOUT_PROMPT, True),
            ("return_finish_reason", True),
            ("return_num_input_tokens", counts),
            ("return_num_output_tokens", counts),
            ("return_logprobs", asked.logprobs),
            ("return_stop_reason", "stop" in sampling.values),
            ("return_cumulative_logprob", asked.score),
            (_LOG_PROBS, asked.score),
        ):
            if (wanted and name in self._inputs) or self._needs(name):
                inputs[name] = self._tensor(name, [wanted])
        values = sampling.values
        if self._needs_most and "max_tokens" not in values:
            values = {**values, "max_tokens": _MOST_TOKENS}
        self._write(values, suffix, request)
        return request

    def _write(
        self, values: Mapping[str, Any], suffix: str | None, request: InferenceRequest
    ) -> None:
        if self._has_json:
            found = {**values, "suffix": suffix} if suffix else dict(values)
            if self._any and "structured_outputs" in found:
                # vLLM's backend reads a text here.
                found["structured_outputs"] = orjson.dumps(found["structured_outputs"]).decode()
            if found or self._needs(SAMPLING):
                request.inputs[SAMPLING] = self._tensor(SAMPLING, [orjson.dumps(found)])
            return
        for name, value in values.items():
            if name == "structured_outputs" and self._guides:
                for each, text in guide_of(value).items():
                    request.inputs[each] = self._tensor(each, [text])
            elif (found_input := self._input_of(name)) is not None:
                request.inputs[found_input] = self._tensor(found_input, value)
            else:
                plain = isinstance(value, bool | int | float | str)
                request.parameters[name] = value if plain else orjson.dumps(value).decode()

    def _needs(self, name: str) -> bool:
        """Return whether the model has an input that each of its requests must have."""
        return name in self._inputs and not self._inputs[name].optional

    def _input_of(self, name: str) -> str | None:
        """Return the input for a field, None if there is none."""
        return next((each for each in _INPUTS.get(name, (name,)) if each in self._inputs), None)

    def _tensor(self, name: str, value: Any) -> Tensor:
        """Return an input of one value or a list. Raises FieldError if it does not fit."""
        spec = self._inputs[name]
        values = value if isinstance(value, list | tuple) else [value]
        shape = shape_of(spec, len(values))
        if self.signature.max_batch_size > 0 and not spec.shape_tensor:
            shape = (1, *shape)
        if spec.dtype is BYTES:
            return Tensor(name, BYTES, shape, raw=b"".join(map(element, values)))
        try:
            array = np.array(values, dtype=spec.dtype.numpy).reshape(shape)
        except (ValueError, OverflowError, TypeError) as error:
            raise wrong(name, f"no {spec.dtype.name} of the model's input: {error}") from None
        return Tensor(name, spec.dtype, shape, array=array)


# Inputs that these routes write beside the text, so that none of them is taken for it.
_KNOWN = {
    *(TOKENS, IMAGES, AUDIO, MESSAGES, TOOLS, SAMPLING, STREAM, WITHOUT_PROMPT),
    *("stop", "stop_words", GUIDE_TYPE, GUIDE),
}


def _one_text(signature: Signature, kind: str, usual: str, specs: Mapping[str, Any]) -> str:
    """Return the usual name if it is there, else that of the only BYTES tensor. Raises CoreError(INVALID)."""
    found = [name for name, spec in specs.items() if spec.dtype is BYTES]
    if usual in found:
        return usual
    if len(found) == 1:
        return found[0]
    raise invalid(
        f"model '{signature.name}' has no text for these routes: expected one BYTES {kind} named {usual}, or "
        f"only one of any name; it has {', '.join(found) or 'none'}"
    )
