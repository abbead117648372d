"""UsageMeter: counts the tokens that models read and generate for a call, for the access log and a limit.

It also writes the number of the caller into each request, if a plugin asks for it (CallerNames).

request ─► [UsageMeter.ask] ─► model ─► Reply ─► [_Counting] ─► Reply of the frontend

It counts models that have an output num_input_tokens or num_output_tokens. If the backend reports the tokens
by core.costs, as an object with `token_counts`, these count. Else the meter asks for the outputs, and takes
them out of the responses of a client that has not asked for them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from core.config import Signature
from core.control import ModelEndpoint
from core.costs import forget_cost, watch_cost
from core.dtypes import BOOL
from core.errors import CoreError
from core.request import InferenceRequest, RequestedOutput
from core.response import InferenceResponse, Reply
from core.tensor import Tensor
from frontends.shared.access.usage_bucket import UsageBucket
from frontends.shared.access_log import AccessLogEntry

PROMPT, GENERATED = "num_input_tokens", "num_output_tokens"
_OUTPUTS = (PROMPT, GENERATED)

Ask = Callable[[ModelEndpoint, InferenceRequest], Reply]


class CountsTokens(Protocol):
    """The cost of a request to a language model."""

    def token_counts(self) -> tuple[int, int]:
        """Return the tokens of the prompt, and those generated so far; -1 where unknown."""


class UsageReport:
    """How the models of one signature report tokens.

    by_cost   True once the backend has reported the cost of a request: the outputs are not asked for any more
    """

    def __init__(self, signature: Signature):
        self.signature = signature
        self.by_cost = False
        self.outputs = tuple(name for name in _OUTPUTS if name in signature.outputs)
        self._flags = {
            name: flag
            for name in self.outputs
            if (spec := signature.inputs.get(flag := f"return_{name}")) is not None
            and spec.dtype is BOOL
        }

    def request_outputs(self, request: InferenceRequest) -> frozenset[str]:
        """Change a request so that its responses have the counts of tokens; return the outputs to remove.

        Inputs `return_<output>` become true, in a new dict. A request that names outputs names these too.
        Does nothing once `by_cost` is true.
        """
        if self.by_cost:
            return frozenset()
        added = set()
        for name, flag in self._flags.items():
            if (given := request.inputs.get(flag)) is None or not given.array.any():
                request.inputs = {**request.inputs, flag: self._true(flag, request)}
                added.add(name)
        if request.outputs:
            missing = set(self.outputs) - {each.name for each in request.outputs}
            request.outputs = (*request.outputs, *map(RequestedOutput, sorted(missing)))
            added |= missing
        return frozenset(added)

    def _true(self, name: str, request: InferenceRequest) -> Tensor:
        """Return a BOOL input that is true in all its elements."""
        spec = self.signature.inputs[name]
        dims = tuple(max(size, 1) for size in spec.dims)
        rows = next((each.shape[0] for each in request.inputs.values() if each.shape), 1)
        shape = (rows, *dims) if self.signature.max_batch_size > 0 else dims
        return Tensor(name, BOOL, shape, array=np.ones(shape, bool))


_reports: dict[tuple[str, int], UsageReport] = {}  # of the last signature of each version
_MOST_REPORTS = 1000  # of versions that were loaded once, too


def report_of(signature: Signature) -> UsageReport | None:
    """Return how a model reports tokens; None if it does not."""
    if PROMPT not in signature.outputs and GENERATED not in signature.outputs:
        return None
    version = signature.name, signature.version
    found = _reports.get(version)
    if found is None or found.signature is not signature:
        if len(_reports) >= _MOST_REPORTS:
            _reports.clear()
        found = _reports[version] = UsageReport(signature)
    return found


def submitted(endpoint: ModelEndpoint, request: InferenceRequest) -> Reply:
    """Submit a request without a trace; see UsageMeter.ask."""
    return endpoint.submit(request)


class UsageMeter:
    """Counts the tokens of the requests of one call. Not thread-safe: call from the event loop only.

    bucket   is checked before a request and charged after it; None: the caller has no limit
    entry    gets the sums; None: the call is not logged
    number   of the caller, which each request gets; 0 for none
    """

    __slots__ = ("_bucket", "_entry", "_number")

    def __init__(self, bucket: UsageBucket | None, entry: AccessLogEntry | None, number: int = 0):
        self._bucket = bucket
        self._entry = entry
        self._number = number

    def ask(
        self,
        ask: Ask,
        endpoint: ModelEndpoint,
        request: InferenceRequest,
        *,
        counts_prompt: bool = True,
    ) -> Reply:
        """Write the caller's number into a request, hand it to its model, and return the reply.

        If the model reports tokens and the call is limited or logged, the request also asks for the counts.
        Raises Exhausted if the caller has no tokens left then. Otherwise the reply is that of `ask`.
        ask             hands a request to an endpoint
        counts_prompt   False if another request of the call counts the same prompt
        """
        request.caller = self._number
        if self._bucket is None and self._entry is None:
            return ask(endpoint, request)
        report = report_of(endpoint.signature)
        if report is None:
            return ask(endpoint, request)
        self.check()
        counting = _Counting(self, report, request, counts_prompt)
        try:
            reply = ask(endpoint, request)
        except BaseException:
            forget_cost(request)
            raise
        return counting.follow(reply)

    def check(self) -> None:
        """Raise Exhausted if the caller has a limit of tokens, and none left."""
        if self._bucket is not None:
            self._bucket.check()

    def add(self, prompt_tokens: int, tokens: int) -> None:
        """Count a request that has ended; -1 for unknown numbers."""
        if self._entry is not None:
            if prompt_tokens >= 0:
                self._entry.prompt_tokens = max(self._entry.prompt_tokens, 0) + prompt_tokens
            if tokens >= 0:
                self._entry.tokens = max(self._entry.tokens, 0) + tokens
        if self._bucket is not None:
            self._bucket.charge(max(prompt_tokens, 0) + max(tokens, 0))


class _Counting:
    """Counts one request, from before its submission until it has ended or is cancelled. A listener."""

    def __init__(
        self, meter: UsageMeter, report: UsageReport, request: InferenceRequest, counts_prompt: bool
    ):
        self._meter = meter
        self._report = report
        self._request = request
        self._counts_prompt = counts_prompt
        self._added = report.request_outputs(request)
        self._costs: list[CountsTokens] = []
        self._prompt_tokens = self._tokens = -1  # of the outputs
        self._over = False
        self._reply: Reply
        watch_cost(request, self._take_cost)

    def follow(self, reply: Reply) -> Reply:
        """Return a reply with the items of `reply`, without the outputs that only the meter has asked for."""
        self._reply = found = Reply(self._request)
        self._request.on_cancel(self._end)
        reply.listen(self)
        return found

    def __call__(self, item: InferenceResponse | CoreError | None, final: bool) -> None:
        if isinstance(item, InferenceResponse) and (self._added or not self._report.by_cost):
            item = self._read(item)
        if final:
            self._end()
        self._reply.send(item, final)

    def _take_cost(self, cost: CountsTokens) -> None:
        self._report.by_cost = True
        self._costs.append(cost)

    def _read(self, response: InferenceResponse) -> InferenceResponse:
        """Note the tokens in a response; return it without the outputs that its client has not asked for."""
        kept = []
        for tensor in response.outputs:
            if tensor.name == PROMPT:
                self._prompt_tokens = max(self._prompt_tokens, _sum(tensor))
            elif tensor.name == GENERATED:
                self._tokens = max(self._tokens, 0) + _sum(tensor)
            if tensor.name not in self._added:
                kept.append(tensor)
        if len(kept) == len(response.outputs):
            return response
        return InferenceResponse(
            response.model_name,
            response.model_version,
            kept,
            id=response.id,
            parameters=dict(response.parameters) if response.has_parameters else None,
        )

    def _end(self) -> None:
        if self._over:
            return
        self._over = True
        forget_cost(self._request)
        prompt_tokens, tokens = self._prompt_tokens, self._tokens
        if self._costs:
            counts = [each.token_counts() for each in self._costs]
            prompt_tokens, tokens = (_known(numbers) for numbers in zip(*counts, strict=True))
        self._meter.add(prompt_tokens if self._counts_prompt else -1, tokens)


def _known(numbers: tuple[int, ...]) -> int:
    """Return the sum of the known numbers; -1 if all are unknown."""
    known = [each for each in numbers if each >= 0]
    return sum(known) if known else -1


def _sum(tensor: Tensor) -> int:
    """Return the sum of an output with numbers of tokens; 0 for one that holds no integers."""
    array: Any = tensor.array
    return int(array.sum()) if array.dtype.kind in "iu" else 0
