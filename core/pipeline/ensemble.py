"""An ensemble: requests that walk through other models instead of instances of their own.

admit ─► [EnsembleChain] ─► the chains of the steps' models ─► Reply.  A step runs as soon as its
inputs are there; tensors go from step to step without a copy. Each answer of a decoupled step opens
a *branch*: what depends on it runs once for each of its answers.
Source of the rules: ModelEnsembling in Triton's model_config.proto and its ensemble scheduler.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from core.config import ModelConfig, Signature
from core.errors import CoreError, Kind
from core.pipeline.admit import Admission
from core.pipeline.cache import Cached, ResponseCache
from core.pipeline.intake import Door, Handler, Intake
from core.pipeline.split import wanted_tensors
from core.request import InferenceRequest, RequestedOutput
from core.response import InferenceResponse, Reply
from core.telemetry.statistics import Statistics
from core.tensor import Tensor

Infer = Callable[[InferenceRequest], Reply]


@dataclass(frozen=True)
class Step:
    """One step: which tensors of the ensemble it takes and gives.

    inputs, outputs   the model's tensor name → the ensemble's
    """

    index: int
    model: str
    version: int
    inputs: dict[str, str]
    outputs: dict[str, str]

    def __str__(self) -> str:
        return f"step {self.index} (model '{self.model}')"


def steps_of(config: ModelConfig) -> list[Step]:
    """The steps in the order of the configuration; a version of 0 or -1 means the newest."""
    return [
        Step(
            index,
            step.model_name,
            step.model_version if step.model_version > 0 else -1,
            dict(step.input_map),
            dict(step.output_map),
        )
        for index, step in enumerate(config.ensemble_scheduling.step)
    ]


def needed_steps(steps: Iterable[Step], wanted: Iterable[str]) -> list[Step]:
    """The steps without which the `wanted` tensors of the ensemble would not be made."""
    steps = list(steps)
    missing = set(wanted)
    needed: set[int] = set()
    while missing:
        makers = {s.index for s in steps if missing & set(s.outputs.values())} - needed
        needed |= makers
        missing = {name for s in steps if s.index in makers for name in s.inputs.values()}
    return [step for step in steps if step.index in needed]


class EnsembleChain:
    """What Chain is for a model with instances: the way through an ensemble. Loop thread only.

    infer    gives a request to the model that it names (Server.infer_step)
    ready    whether every model of the steps can serve
    """

    def __init__(
        self,
        config: ModelConfig,
        signature: Signature,
        infer: Infer,
        ready: Callable[[], bool],
        loop: asyncio.AbstractEventLoop,
        clock_ns: Callable[[], int] = time.monotonic_ns,
        cache: ResponseCache | None = None,
    ):
        self.signature = signature
        self.statistics = Statistics()
        self.steps = steps_of(config)
        self.infer = infer
        self.clock_ns = clock_ns
        self._ready = ready
        self._intake = Intake(loop)
        inner: Handler = self._run
        if cache is not None and config.response_cache.enable:
            inner = Cached(inner, cache, signature, self.statistics, self._intake.ended, clock_ns)
        self.handler: Handler = Door(self._intake, Admission(signature, clock_ns), inner)

    @property
    def pending(self) -> int:
        """Always 0: requests wait in the queues of the steps' models."""
        return 0

    @property
    def in_flight(self) -> int:
        """Accepted requests without their last answer."""
        return self._intake.in_flight

    @property
    def ready(self) -> bool:
        return self._ready()

    async def drain(self) -> None:
        """Refuse new requests and wait for the last answer of those that were accepted."""
        await self._intake.drain()

    async def close(self) -> None:
        """Nothing is open: an ensemble has no instances."""
        self._intake.close()

    def _run(self, request: InferenceRequest) -> Reply:
        wanted = [output.name for output in request.outputs] or list(self.signature.outputs)
        run = _Run(self, request, needed_steps(self.steps, wanted), wanted)
        run.begin()
        return run.reply

    def ended(self, request: InferenceRequest, error: CoreError | None) -> None:
        """A request has got its last answer: count it."""
        total = self.clock_ns() - request.arrival_ns
        if error is None:
            self.statistics.executed(request.rows, 0, total, 0)
            self.statistics.succeeded(request.rows, total, 0, 0, total, 0)
        else:
            cancelled = request.cancelled or error.kind is Kind.CANCELLED
            self.statistics.failed("CANCELED" if cancelled else "OTHER", total)
        self._intake.ended()


@dataclass
class _Branch:
    """The tensors that belong together, and the steps that still wait for theirs.

    The first branch holds the request's inputs. Each answer of a decoupled step makes another one,
    which sees the tensors of the branch it grew from.
    """

    parent: _Branch | None
    waiting: list[Step]
    tensors: dict[str, Tensor] = field(default_factory=dict)
    children: list[_Branch] = field(default_factory=list)
    running: int = 0
    answered: bool = False

    def find(self, name: str) -> Tensor | None:
        branch: _Branch | None = self
        while branch is not None:
            if (tensor := branch.tensors.get(name)) is not None:
                return tensor
            branch = branch.parent
        return None


class _Run:
    """One request on its way through the steps.

    Invariants:
    1. `running` of all branches together is the number of steps whose last answer is outstanding.
    2. After the final item of `reply` nothing is started any more.
    """

    def __init__(
        self,
        chain: EnsembleChain,
        request: InferenceRequest,
        steps: list[Step],
        wanted: list[str],
    ):
        self.reply = Reply(request)
        self._chain = chain
        self._request = request
        self._wanted = wanted
        self._root = _Branch(None, steps, dict(request.inputs))
        self._absent = {name for name in chain.signature.inputs if name not in request.inputs}
        self._outstanding: set[Reply] = set()

    def begin(self) -> None:
        self._request.on_cancel(self._cancel_steps)
        self._advance(self._root)
        self._finish_if_done()

    def _advance(self, branch: _Branch) -> None:
        """Start every step of a branch, and of those that grew from it, whose inputs are there."""
        started = True
        while started and not self.reply.finished:
            started = False
            for step in list(branch.waiting):
                if step in branch.waiting and self._has_inputs(branch, step):
                    branch.waiting.remove(step)
                    self._start(branch, step)
                    started = True
        self._answer(branch)
        for child in list(branch.children):
            self._advance(child)

    def _has_inputs(self, branch: _Branch, step: Step) -> bool:
        return all(
            name in self._absent or branch.find(name) is not None for name in step.inputs.values()
        )

    def _start(self, branch: _Branch, step: Step) -> None:
        asked = self._request
        inputs = {}
        for theirs, ours in step.inputs.items():
            if (tensor := branch.find(ours)) is not None:
                inputs[theirs] = tensor.reshaped(tensor.shape, theirs)
        request = InferenceRequest(
            step.model,
            inputs,
            model_version=step.version,
            id=asked.id,
            outputs=tuple(RequestedOutput(name) for name in step.outputs),
            parameters=asked.parameters,
            correlation_id=asked.correlation_id,
            flags=asked.flags,
            priority=asked.priority,
            timeout_us=asked.timeout_us,
            deadline_ns=asked.deadline_ns,
            trace=asked.trace,
            shared=asked.shared,
        )
        try:
            reply = self._chain.infer(request)
        except CoreError as error:
            self._fail(step, error)
            return
        branch.running += 1
        self._outstanding.add(reply)
        first = True

        def arrived(item: InferenceResponse | CoreError | None, final: bool) -> None:
            nonlocal first
            if final:
                branch.running -= 1
                self._outstanding.discard(reply)
            if isinstance(item, CoreError):
                self._fail(step, item)
            elif item is not None and not self.reply.finished:
                # The only answer stays in the branch; one of several opens a branch of its own.
                into = branch if first and final else self._grow(branch, step)
                first = False
                for tensor in item.outputs:
                    ours = step.outputs[tensor.name]
                    into.tensors[ours] = tensor.reshaped(tensor.shape, ours)
                self._advance(into)
            self._finish_if_done()

        reply.listen(arrived)

    def _grow(self, branch: _Branch, step: Step) -> _Branch:
        """A branch for one of several answers of `step`, with the steps that depend on it."""
        made, dependent = set(step.outputs.values()), []
        rest = list(self._root.waiting if branch.parent is None else branch.waiting)
        grown = True
        while grown:
            grown = False
            for other in rest:
                if other not in dependent and made & set(other.inputs.values()):
                    dependent.append(other)
                    made |= set(other.outputs.values())
                    grown = True
        child = _Branch(branch, dependent)
        branch.children.append(child)
        return child

    def _answer(self, branch: _Branch) -> None:
        """Send what a branch adds to the wanted outputs, once all of them are there."""
        if branch.answered or self.reply.finished:
            return
        tensors = []
        for name in self._wanted:
            if (tensor := branch.find(name)) is None:
                return
            tensors.append(tensor)
        if branch.parent is not None and not any(name in branch.tensors for name in self._wanted):
            return
        branch.answered = True
        chain = self._chain
        try:
            outputs = wanted_tensors(tensors, self._request, chain.signature)
        except CoreError as error:
            self._end(error)
            return
        response = InferenceResponse(
            chain.signature.name, chain.signature.version, outputs, id=self._request.id
        )
        if chain.signature.decoupled:
            self.reply.send(response, False)
        else:
            self._count(None)
            self.reply.send(response, True)

    def _finish_if_done(self) -> None:
        if self._outstanding or self.reply.finished:
            return
        chain = self._chain
        if chain.signature.decoupled:
            self._end(None)
            return
        self._end(
            CoreError(
                Kind.INVALID,
                f"in ensemble '{chain.signature.name}', unexpected deadlock, at least one output is "
                "not set while no more ensemble steps can be made",
            )
        )

    def _fail(self, step: Step, error: CoreError) -> None:
        if not self.reply.finished:
            self._end(
                CoreError(
                    error.kind,
                    f"in ensemble '{self._chain.signature.name}', {step}: {error.message}",
                )
            )

    def _end(self, error: CoreError | None) -> None:
        self._count(error)
        self.reply.send(error, True)
        self._cancel_steps()

    def _count(self, error: CoreError | None) -> None:
        self._chain.ended(self._request, error)

    def _cancel_steps(self) -> None:
        for reply in list(self._outstanding):
            reply.cancel()
