"""Piece: what one response of a model adds to a text.

InferenceResponse ─► [PieceReader] ─► Piece.  The outputs are those of our engines, of vLLM's and of
TensorRT-LLM's models; any other model has its text alone.
"""

from __future__ import annotations

import codecs
import struct
from typing import Any, NamedTuple

import orjson

from core.dtypes import BYTES
from core.errors import internal
from core.response import InferenceResponse
from core.tensor import Tensor

_SCORES = ("cumulative_logprob", "cum_log_probs")  # of our engines and vLLM, of TensorRT-LLM
_LENGTH = struct.Struct("<I")


class TokenLogprob(NamedTuple):
    """Probability of one token: its text, its natural logarithm, and the alternatives, most likely first."""

    text: str
    logprob: float
    top: tuple[tuple[str, float], ...] = ()


class Piece(NamedTuple):
    """What one response adds.

    text            characters; those of a character that is cut come with the next response
    finish          "" unless the model says that the text ends: then "stop", "length" or another word
    logprobs        of the new tokens; None if there are none
    prompt_tokens   tokens of the prompt; -1 if unknown
    tokens          new tokens; -1 if unknown
    score           logarithm of the probability of all tokens so far; None if unknown
    stop            the stop string that has ended the text; "" if none has, or the model does not say it
    """

    text: str = ""
    finish: str = ""
    logprobs: tuple[TokenLogprob, ...] | None = None
    prompt_tokens: int = -1
    tokens: int = -1
    score: float | None = None
    stop: str = ""


class PieceReader:
    """Reads the responses of one request, in their order.

    output   name of the output with the text
    """

    __slots__ = ("_decode", "_output")

    def __init__(self, output: str):
        self._output = output
        # A model may cut its text anywhere, also within a character.
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode

    def read(self, response: InferenceResponse) -> Piece:
        """Return the piece of a response. Raises CoreError(INTERNAL) for outputs that are not understood."""
        text, finish, logprobs, prompt_tokens, tokens, score = "", "", None, -1, -1, None
        stop = ""
        for tensor in response.outputs:
            name = tensor.name
            if name == self._output:
                text = self._decode(_bytes_of(tensor))
            elif name == "finish_reason":
                word = _bytes_of(tensor)
                if word and word != b"None":
                    finish = word.decode("utf-8", "replace")
            elif name == "stop_reason":
                stop = _bytes_of(tensor).decode("utf-8", "replace")
            elif name == "num_input_tokens":
                prompt_tokens = int(tensor.array.flat[0])
            elif name == "num_output_tokens":
                tokens = int(tensor.array.flat[0])
            elif name == "logprobs":
                logprobs = _logprobs_of(tensor)
            elif name in _SCORES and tensor.dtype.numpy.kind == "f" and tensor.count:
                score = float(tensor.array.flat[0])
        return Piece(text, finish, logprobs, prompt_tokens, tokens, score, stop)

    def end(self) -> str:
        """Return what is left: a mark for a character that was never complete."""
        return self._decode(b"", True)


def _bytes_of(tensor: Tensor) -> bytes:
    """Return the one element of a BYTES tensor; b"" if it has none."""
    if tensor.dtype is not BYTES:
        raise internal(f"output '{tensor.name}' is {tensor.dtype.name}; expected BYTES")
    if tensor.count != 1:
        if tensor.count == 0:
            return b""
        raise internal(f"output '{tensor.name}' has {tensor.count} texts; expected one")
    if tensor.has_raw:
        return bytes(memoryview(tensor.raw)[_LENGTH.size :])
    found = tensor.array.item(0)
    return found if type(found) is bytes else str(found).encode()


def _logprobs_of(tensor: Tensor) -> tuple[TokenLogprob, ...] | None:
    text = _bytes_of(tensor)
    if not text or text == b"null":
        return None
    try:
        found = orjson.loads(text)
        return tuple(map(_logprob_of, found)) if type(found) is list else None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise internal(
            f"output 'logprobs' is not understood: {type(error).__name__}: {error}"
        ) from None


def _logprob_of(entry: dict[str, Any]) -> TokenLogprob:
    """Return an entry of our form, or of vLLM's: {token: {logprob, rank, decoded_token}}, the token first."""
    if "logprob" in entry:
        top = tuple((str(each["text"]), float(each["logprob"])) for each in entry.get("top") or ())
        return TokenLogprob(str(entry["text"]), float(entry["logprob"]), top)
    found = list(entry.values())
    ranked = sorted(found, key=lambda each: each.get("rank") or len(found))
    top = tuple((str(each.get("decoded_token") or ""), float(each["logprob"])) for each in ranked)
    first = found[0]
    return TokenLogprob(str(first.get("decoded_token") or ""), float(first["logprob"]), top)
