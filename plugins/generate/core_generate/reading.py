"""Read the tensors of a request to an engine's model, and refuse what its engine cannot do."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from core.errors import CoreError, invalid
from core.tensor import Tensor
from core_generate.chat.media import check_audio, check_image
from core_generate.chat.messages import MOST_MEDIA
from core_generate.engine import Prompt, Sampling, Speech, never
from core_generate.sampling import INPUT, SamplingRequest, read_sampling, sampling_among
from core_generate.sound import decode
from core_generate.tensors import RETURNS

_ALWAYS = frozenset({"max_tokens", "stop", "text"})
_PLAIN = SamplingRequest()
_SPACES = b" \t\n\r\v\f"  # in base64


@dataclass(frozen=True, slots=True)
class GenerateRequest:
    """What a client asks of the task "generate".

    stream    True: each event becomes a response; False: one response has the whole text
    prepend   whether the text of each response begins with the prompt
    returns   names of the outputs that the responses have beside text_output
    """

    prompt: Prompt
    sampling: Sampling
    stream: bool
    prepend: bool
    returns: frozenset[str]


def read_generate(
    inputs: Mapping[str, Tensor],
    supports: frozenset[str],
    parameters: Mapping[str, Any] | None = None,
) -> GenerateRequest:
    """Return what the inputs of a request ask for.

    supports     as Engine.supports
    parameters   of the request, or None; they count as sampling parameters without the input of that name
    Raises CoreError(INVALID), which names the input or field, for one that is wrong or not supported.
    """
    text, tokens = read_prompt(inputs)
    given = inputs.get(INPUT)
    if given is not None:
        asked = read_sampling(element(given))
    else:
        asked = sampling_among(parameters) if parameters else _PLAIN
    for field, name in asked.fields.items():
        if field not in supports and field not in _ALWAYS:
            raise _unsupported(f"the field '{name}' of {INPUT}", field, supports)
    if tokens is not None and "tokens" not in supports:
        raise _unsupported("the input 'prompt_token_ids'", "tokens", supports)
    if tokens is not None and asked.suffix:
        raise invalid(
            "the field 'suffix' follows a prompt of text: send text_input, not prompt_token_ids"
        )
    images = tuple(
        check_image(_image(each), "image") for each in _files(inputs, "image", "images", supports)
    )
    sounds = tuple(
        check_audio(each, "audio") for each in _files(inputs, "audio", "audio", supports)
    )
    stream = flag(inputs, "stream")
    returns = frozenset(
        [RETURNS[each] for each in inputs if each in RETURNS and flag(inputs, each)]
    )
    sampling = asked.sampling
    if sampling.logprobs is None and not returns.isdisjoint(("logprobs", "cumulative_logprob")):
        if "logprobs" not in supports:
            name = "return_logprobs" if "logprobs" in returns else "return_cumulative_logprob"
            raise _unsupported(f"the input '{name}'", "logprobs", supports)
        sampling = replace(sampling, logprobs=0)
    prepend = not stream
    if "exclude_input_in_output" in inputs:
        prepend = not flag(inputs, "exclude_input_in_output")
        if prepend and stream:
            raise invalid("When streaming, `exclude_input_in_output` = False is not allowed.")
    prompt = Prompt(text, tokens or (), images, sounds, asked.suffix, asked.adapter)
    return GenerateRequest(prompt, sampling, stream, prepend, returns)


def _files(
    inputs: Mapping[str, Tensor], name: str, field: str, supports: frozenset[str]
) -> list[bytes]:
    """Return the files in an input; [] without it. Raises CoreError(INVALID) for too many, or unsupported."""
    if (tensor := inputs.get(name)) is None or not tensor.array.size:
        return []
    if field not in supports:
        raise _unsupported(f"the input '{name}'", field, supports)
    if tensor.array.size > MOST_MEDIA:
        raise invalid(f"{name}: {tensor.array.size} files, at most {MOST_MEDIA} are allowed")
    found: list[bytes] = tensor.array.ravel().tolist()
    return found


def read_speech(
    inputs: Mapping[str, Tensor], supports: frozenset[str], stopped: Callable[[], bool] = never
) -> Speech:
    """Return what the inputs of the task "transcribe" ask for, with the sound decoded.

    supports   as Engine.supports
    stopped    whether the request is cancelled
    Raises CoreError(INVALID), which names the input, for one that is wrong or not supported, and
    CoreError(CANCELLED).
    """
    if (audio := inputs.get("audio")) is None:
        raise missing("audio")
    asked: dict[str, Any] = {
        name: decoded(name, element(inputs[name])).strip()
        for name in ("language", "prompt")
        if name in inputs
    }
    if "temperature" in inputs:
        asked["temperature"] = found = float(element(inputs["temperature"]))
        if not 0 <= found <= 2:
            raise invalid(f"the input 'temperature' is {found}, expected a number from 0 to 2")
    asked["times"] = flag(inputs, "times")
    for name, value in asked.items():
        if value not in ("", False, None) and name not in supports:
            raise _unsupported(f"the input '{name}'", name, supports, frozenset())
    samples = decode(element(audio), "audio", stopped)
    if not len(samples):
        raise invalid("the input 'audio' has no samples")
    return Speech(samples, **asked)


def read_prompt(inputs: Mapping[str, Tensor]) -> tuple[str, list[int] | None]:
    """Return (`text_input`, None), or ("", `prompt_token_ids`), whichever of the two inputs is given.

    Raises CoreError(INVALID) if both or neither are given, if the text is not UTF-8, and as `read_tokens`.
    """
    text, tokens = inputs.get("text_input"), inputs.get("prompt_token_ids")
    if text is not None and tokens is None:
        return decoded("text_input", element(text)), None
    if text is not None or tokens is None:
        raise invalid(
            f"the request has {'no' if text is None else 'a'} text_input and "
            f"{'no' if tokens is None else 'also'} prompt_token_ids; it needs one of the two"
        )
    return "", read_tokens(tokens)


def read_tokens(tensor: Tensor) -> list[int]:
    """Return the tokens in a tensor. Raises CoreError(INVALID) if it is empty or has a negative token."""
    found: list[int] = tensor.array.tolist()
    if not found:
        raise invalid(f"the input '{tensor.name}' is empty")
    if min(found) < 0:
        raise invalid(f"the input '{tensor.name}' has the token {min(found)}, tokens begin with 0")
    return found


def texts(inputs: Mapping[str, Tensor], name: str) -> list[str]:
    """Return the texts of a BYTES input. Raises CoreError(INVALID) if it is absent, or one is not UTF-8."""
    if (tensor := inputs.get(name)) is None:
        raise missing(name)
    return [decoded(name, each) for each in tensor.array.ravel().tolist()]


def missing(name: str) -> CoreError:
    """Return the error for an input that the task needs and the request lacks."""
    return invalid(f"the request has no input '{name}', which this task needs")


def element(tensor: Tensor) -> Any:
    """Return the first element of a tensor. Raises IndexError if the tensor is empty."""
    return tensor.array.ravel()[0]


def flag(inputs: Mapping[str, Tensor], name: str) -> bool:
    """Return the value of the BOOL[1] input `name`; False if the request does not have it."""
    tensor = inputs.get(name)
    return tensor is not None and bool(element(tensor))


def decoded(name: str, data: bytes) -> str:
    """Return the text of a BYTES element. Raises CoreError(INVALID) if it is not UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise invalid(
            f"the input '{name}' is not UTF-8: {error.reason} at byte {error.start}"
        ) from None


def _image(data: bytes) -> bytes:
    """Return the file of an image: if `data` is valid base64, what it encodes; else `data` itself.

    Clients of Triton's vLLM backend send base64.
    """
    if data.isascii():
        try:
            return base64.b64decode(data.translate(None, _SPACES), validate=True)
        except binascii.Error:
            pass
    return data


def _unsupported(
    what: str, field: str, supports: frozenset[str], always: frozenset[str] = _ALWAYS
) -> CoreError:
    can = ", ".join(sorted(supports | always)) or "none of these fields"
    return invalid(
        f"{what} is not supported: the engine of this model has no '{field}', it has {can}"
    )
