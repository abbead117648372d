"""Refuses prompts that cannot fit into a context by their size alone: tokenizing takes long, and memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from core.tensor import Tensor
from core_generate.errors import PromptTooLong

# Bytes of text for each token of the context. Few vocabularies have longer tokens.
_MOST_OF_TOKEN = 64
# Bytes or tokens that every prompt may have. Smaller requests are not checked (EngineInstance.begin).
_LEAST_BOUND = 64 * 1024
_LEAST_COUNTED = 1024 * 1024  # bytes of a text whose tokens are counted
_MOST_OF_CHARACTER = 4  # bytes in UTF-8
_PREFIX = 4  # bytes before an element of BYTES
# Tokens of a prompt for each token of the context that is known here. An engine may have a longer context
# than its description says; it checks exactly.
_MOST_TIMES = 16


def longest_text(context: int) -> int:
    """Return the bytes of a text that are tokenized for a context of that many tokens."""
    return max(_LEAST_BOUND, context * _MOST_OF_TOKEN)


def excess_bytes(text: str, most: int) -> int:
    """Return the bytes of a text in UTF-8 if they are more than `most`, else 0."""
    if len(text) * _MOST_OF_CHARACTER <= most:
        return 0
    size = len(text.encode("utf-8", "surrogatepass"))
    return size if size > most else 0


def check_prompt(inputs: Mapping[str, Tensor], context: int) -> None:
    """Raise PromptTooLong for a prompt, text or tokens, that is longer than its context by far.

    context   tokens that the model can read, 0 if unknown: no prompt is refused then
    """
    if not context:
        return
    text, tokens = inputs.get("text_input"), inputs.get("prompt_token_ids")
    if text is not None and (size := size_of(text) - _PREFIX) > longest_text(context):
        raise PromptTooLong(f"the prompt has {_excess(size, context)}")
    if tokens is not None and tokens.count > max(_LEAST_BOUND, context * _MOST_TIMES):
        raise PromptTooLong(
            f"the prompt has {tokens.count} tokens, the context is {context} tokens; shorten the prompt"
        )


def check_texts(texts: Sequence[str], name: str, context: int) -> None:
    """Raise PromptTooLong for the first text of the input `name` that is longer than its context by far.

    context   as of `check_prompt`
    """
    most = longest_text(context)
    for number, text in enumerate(texts):
        if context and (size := excess_bytes(text, most)):
            raise PromptTooLong(f"text {number} of '{name}' has {_excess(size, context)}")


def check_counted(text: str, context: int) -> None:
    """Raise PromptTooLong for a text whose tokens alone are asked for, if it is too long.

    context   as of `check_prompt`
    Such a text may be longer than the context: clients then cut it. So the least bound is 1 MiB here.
    """
    most = max(_LEAST_COUNTED, longest_text(context))
    if context and (size := excess_bytes(text, most)):
        raise PromptTooLong(f"the text has {_excess(size, context, most)}")


def _excess(size: int, context: int, most: int = 0) -> str:
    return (
        f"{size} bytes, the context is {context} tokens, for which at most "
        f"{most or longest_text(context)} bytes are read; shorten the text"
    )


def size_of(tensor: Tensor) -> int:
    """Return the bytes of a tensor's wire form, without making it."""
    if tensor.dtype.byte_size:
        return tensor.count * tensor.dtype.byte_size
    if tensor.has_raw:
        return memoryview(tensor.raw).nbytes
    found: list[bytes] = tensor.array.ravel().tolist()
    return sum([len(each) + _PREFIX for each in found])
