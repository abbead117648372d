"""Cost: what a caller is charged for a request: its rows, or the tokens that its model reads and generates.

Rows are known when a request comes. Tokens are estimated then, and corrected when it ends.
"""

from __future__ import annotations

from typing import Any, Literal

from core.config import Signature
from core.costs import forget_cost, watch_cost
from core.errors import CoreError
from core.request import InferenceRequest
from core.response import InferenceResponse

Unit = Literal["rows", "tokens"]

_TEXT, _TOKENS = "text_input", "prompt_token_ids"
_PROMPT, _GENERATED = "num_input_tokens", "num_output_tokens"
_BYTES_PER_TOKEN = 4  # of text: a common mean
_FIRST_MEAN = 128.0  # generated tokens, before a request has ended
_SMOOTHING = 1 / 32


def counts_tokens(signature: Signature) -> bool:
    """Return whether a model reports the tokens of a request."""
    return _GENERATED in signature.outputs or _PROMPT in signature.outputs


class Rows:
    """Charges the rows of a request."""

    unit: Unit = "rows"

    def estimate(self, request: InferenceRequest) -> float:
        return max(1, request.rows)

    def begin(self, request: InferenceRequest) -> Usage | None:
        """Return what counts the cost of a request that is about to be let through; None if it is known."""
        return None

    def end(self, usage: Usage | None, estimate: float) -> float:
        """Return the cost of a request that has ended."""
        return estimate


class Tokens(Rows):
    """Charges the tokens of prompt and answer.

    The estimate is that of the prompt by its size, and of the answer by the mean of the model, or the most
    that the request permits if that is less.
    """

    unit: Unit = "tokens"

    def __init__(self) -> None:
        self._mean = _FIRST_MEAN

    def estimate(self, request: InferenceRequest) -> float:
        most = _number(request, "max_tokens")
        generated = self._mean if most is None else min(most, self._mean)
        return max(1.0, _prompt_tokens(request) + generated)

    def begin(self, request: InferenceRequest) -> Usage | None:
        usage = Usage(request)
        if request.parent is None:  # a step reports for the client's request, of which it is a part
            watch_cost(request, usage.reports.append)
        return usage

    def end(self, usage: Usage | None, estimate: float) -> float:
        assert usage is not None
        if usage.request.parent is None:
            forget_cost(usage.request)
        prompt, generated = usage.tokens()
        if generated >= 0:
            self._mean += (generated - self._mean) * _SMOOTHING
        if prompt < 0 and generated < 0:
            return estimate if usage.answered else 1.0
        if prompt < 0:
            prompt = int(_prompt_tokens(usage.request))
        return max(1.0, prompt + max(generated, 0))


class Usage:
    """The tokens of one request, as its model reports them by core.costs, or by its outputs.

    reports    by core.costs
    answered   whether a response has come
    """

    __slots__ = ("_generated", "_prompt", "answered", "reports", "request")

    def __init__(self, request: InferenceRequest):
        self.request = request
        self.reports: list[Any] = []
        self.answered = False
        self._prompt = self._generated = -1

    def take(self, item: InferenceResponse | CoreError | None) -> None:
        """Take an item of the reply."""
        if not isinstance(item, InferenceResponse):
            return
        self.answered = True
        for tensor in item.outputs:
            if tensor.name == _PROMPT:
                self._prompt = max(self._prompt, _sum(tensor.array))
            elif tensor.name == _GENERATED:
                self._generated = max(self._generated, 0) + _sum(tensor.array)

    def tokens(self) -> tuple[int, int]:
        """Return the tokens of the prompt and of the answer; -1 where unknown."""
        prompt, generated = self._prompt, self._generated
        for each in self.reports:
            read, made = each.token_counts()
            prompt, generated = max(prompt, read), max(generated, made)
        return prompt, generated


def _prompt_tokens(request: InferenceRequest) -> float:
    """Return the tokens of the prompt, or an estimate from the size of its text; 0 without a prompt."""
    if (tokens := request.inputs.get(_TOKENS)) is not None:
        size = 1
        for dim in tokens.shape:
            size *= dim
        return size
    text = request.inputs.get(_TEXT)
    return 0.0 if text is None else text.byte_size / _BYTES_PER_TOKEN


def _number(request: InferenceRequest, name: str) -> float | None:
    """Return the number in an input or a parameter of a request; None without one."""
    given: Any = None
    if (tensor := request.inputs.get(name)) is not None:
        try:
            given = tensor.array.flat[0]
        except (CoreError, IndexError, ValueError):
            return None  # the model refuses it
    elif request.has_parameters:
        given = request.parameters.get(name)
    try:
        number = float(given)
    except (TypeError, ValueError):
        return None
    return number if number > 0 else None


def _sum(array: Any) -> int:
    """Return the sum of an output with numbers of tokens; 0 for an output of texts."""
    return int(array.sum()) if array.dtype.kind in "iu" else 0
