"""The model of a loop: runs the steps of a loop in turns.

Run ─► [LoopModel] ─► a Run for each turn ─► Reply.  A turn is an ensemble of its own: its inputs are the
tensors from outside, its outputs those that the next turn and others read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial

from core.config import InputSpec, OutputSpec, Signature
from core.dtypes import BOOL
from core.errors import CoreError, DeadlineExceeded, Kind, cancelled
from core.governing import (
    ChainServices,
    EnsemblePlan,
    Infer,
    Run,
    ServedModels,
    Step,
    of_rank,
    outputs_asked,
)
from core.request import DeviceOutput, InferenceRequest, RequestedOutput
from core.response import InferenceResponse, Reply
from core.tensor import Tensor
from core_ensembles.arranging import LoopSteps, presence
from core_ensembles.conditions import FLAGS
from core_ensembles.language.kinds import Form

_HIDDEN = Form(BOOL, (1,), False)  # of the tensors of conditions
_MOST_PLANS = 64  # of one loop
_NEVER = "\0never"
"""An input of a turn, which is false; and the step that it skips."""


@dataclass(frozen=True)
class Turns:
    """What the runs of one loop share.

    inverse   whether the tensor `again` is true where the condition is false
    plan_of   returns the plan of a turn, by the tensors from outside that do not exist
    asked     the outputs that a turn returns; empty for all, in host memory
    ranks     tensor → number of its dimensions, if it is carried from a tensor with another number of them
    ended     called with the number of turns, and whether the condition still held after the last
    """

    name: str
    steps: LoopSteps
    inverse: bool
    plan_of: Callable[[frozenset[str]], EnsemblePlan]
    asked: tuple[RequestedOutput, ...]
    ranks: dict[str, int]
    models: ServedModels
    services: ChainServices
    ended: Callable[[int, bool], None]

    def run(self, request: InferenceRequest) -> Reply:
        """Begin the first turn, and return the reply that gets the tensors of the last one."""
        return LoopRun(self, request).begin()


def turns_of(
    signature: Signature,
    steps: LoopSteps,
    inverse: bool,
    forms: dict[str, Form],
    infer: Infer,
    models: ServedModels,
    services: ChainServices,
    ended: Callable[[int, bool], None],
) -> Turns:
    """Return what the runs of a loop share.

    signature   of the ensemble
    forms       of all tensors of the ensemble
    """
    loop = steps.loop
    made = dict.fromkeys([*loop.carry, *steps.made, *([steps.again] if steps.again else [])])
    # A turn answers with the tensors from outside, too: it may skip all of its steps.
    names = [*made, *steps.outside]
    wanted = [_wanted(name, steps) for name in made]
    requested = outputs_asked(steps.steps, wanted)
    plans = _Plans(signature, steps, names, forms, infer, requested)
    ranks = {
        old: len(forms[old].shape)
        for new, old in loop.carry.items()
        if forms[new].batched is not forms[old].batched
    }
    wanted += [DeviceOutput(name) for name in steps.outside]
    asked = () if requested is None else tuple(wanted)
    plan_of = lru_cache(_MOST_PLANS)(plans.without)
    return Turns(loop.key, steps, inverse, plan_of, asked, ranks, models, services, ended)


class _Plans:
    """Makes the plans of a turn.

    signature   of the ensemble
    names       of the tensors with which a turn answers
    requested   see EnsemblePlan
    """

    def __init__(
        self,
        signature: Signature,
        steps: LoopSteps,
        names: list[str],
        forms: Mapping[str, Form],
        infer: Infer,
        requested: dict[int, tuple[RequestedOutput, ...]] | None,
    ):
        self._signature = signature
        self._steps = steps
        self._names = names
        self._forms = forms
        self._infer = infer
        self._requested = requested

    def without(self, missing: frozenset[str]) -> EnsemblePlan:
        """Return the plan of a turn without some tensors from outside.

        A client may have omitted them, as inputs of the ensemble. The others are those of skipped steps: one
        more step stands for these, which is always skipped.
        """
        omitted = missing.intersection(self._signature.inputs)
        lost = missing - omitted
        inputs = {name: self._input(name) for name in self._steps.outside if name not in lost}
        names = [name for name in self._names if name not in omitted]
        steps = list(self._steps.steps)
        if missing:  # one tensor that exists, since a turn may make none
            inputs[_NEVER] = self._input(_NEVER)
            names.append(_NEVER)
        if lost:
            steps.append(Step(-1, _NEVER, -1, {}, {name: name for name in lost}, _NEVER))
        own = Signature(
            self._signature.name,
            self._signature.version,
            inputs,
            {name: self._output(name) for name in names},
            self._signature.max_batch_size,
            False,
        )
        return EnsemblePlan(own, steps, names, self._infer, _ended, 0, None, self._requested)

    def _input(self, name: str) -> InputSpec:
        form = self._forms.get(name, _HIDDEN)
        return InputSpec(name, form.dtype, form.dims)

    def _output(self, name: str) -> OutputSpec:
        form = self._forms.get(name, _HIDDEN)
        return OutputSpec(name, form.dtype, form.dims)


def _ended(request: InferenceRequest, error: CoreError | None) -> None:
    """Do nothing at the end of a turn: the ensemble counts its requests, and no turns."""


def _wanted(name: str, steps: LoopSteps) -> RequestedOutput:
    """Return the request for an output of a turn: it may stay on a device if a step of the next takes it."""
    old = steps.loop.carry.get(name)
    readers = [each for each in steps.steps if old is not None and old in each.needs]
    if not any(each.takes_device for each in readers):
        return RequestedOutput(name)
    return DeviceOutput(name, name in steps.made or not all(each.takes_device for each in readers))


class LoopRun:
    """One request to a loop. Not thread-safe: call from the event loop only."""

    def __init__(self, turns: Turns, request: InferenceRequest):
        self._turns = turns
        self._request = request
        self._reply = Reply(request)
        self._tensors: dict[str, Tensor] = dict(request.inputs)
        self._number = 0
        self._current: InferenceRequest | None = None

    def begin(self) -> Reply:
        """Begin the first turn, and return the reply."""
        self._request.on_cancel(self._cancel)
        self._turn()
        return self._reply

    def _turn(self) -> None:
        request, turns = self._request, self._turns
        if request.cancelled:
            self._reply.fail(cancelled())
            return
        if request.deadline_ns and turns.services.clock_ns() >= request.deadline_ns:
            text = f"Deadline Exceeded after {self._number} turns of {turns.name}"
            self._reply.fail(DeadlineExceeded(text))
            return
        self._number += 1
        plan = turns.plan_of(self._missing())
        inputs = dict(self._tensors)
        if _NEVER in plan.signature.inputs:
            inputs[_NEVER] = FLAGS[False].renamed(_NEVER)
        current = self._current = request.copy_with(inputs)
        current.outputs = turns.asked
        # Each turn would begin or end the client's sequence anew.
        current.correlation_id = current.flags = 0
        current.deadline_ns = request.deadline_ns
        current.trace, current.shared, current.parent = request.trace, request.shared, request
        name = f"{turns.name} turn {self._number}"
        begin = partial(_begun, plan)
        reply = turns.models.traced(current, name, plan.signature.version, begin)
        reply.listen(self._arrived)

    def _missing(self) -> frozenset[str]:
        """Return the tensors from outside that do not exist."""
        outside = self._turns.steps.outside
        if len(self._tensors) == len(outside):
            return frozenset()
        return frozenset(outside).difference(self._tensors)

    def _arrived(self, item: InferenceResponse | CoreError | None, final: bool) -> None:
        self._current = None
        if isinstance(item, InferenceResponse):
            self._take({tensor.name: tensor for tensor in item.outputs})
        elif item is not None:
            name = self._turns.plan_of(frozenset()).signature.name
            text = item.message.removeprefix(f"in ensemble '{name}', ")
            self._reply.fail(CoreError(item.kind, f"turn {self._number}, {text}"))

    def _take(self, found: dict[str, Tensor]) -> None:
        """Use the tensors of a turn: for the next one, or as the answer."""
        turns, loop = self._turns, self._turns.steps.loop
        again = self._number < loop.most
        holds = False
        if (name := turns.steps.again) is not None:
            flag = found.get(name)
            holds = (flag is not None and bool(flag.array.all())) is not turns.inverse
            again = again and holds
        if again:
            self._carry(found)
            # Not at once: turns that models answer at once would recurse, and occupy the event loop.
            turns.services.loop.call_soon(self._turn)
            return
        turns.ended(self._number, holds)
        if holds and loop.strict:
            self._reply.fail(self._too_many())
            return
        response = InferenceResponse(self._request.model_name, 1, _outputs(turns.steps, found))
        self._reply.send(response, True)

    def _carry(self, found: dict[str, Tensor]) -> None:
        """Give the tensors of a turn to the next one. What a skipped step has not made keeps its value."""
        for new, old in self._turns.steps.loop.carry.items():
            if (tensor := found.get(new)) is not None:
                if old in self._turns.ranks:
                    tensor = of_rank(tensor, self._turns.ranks[old])
                self._tensors[old] = tensor.renamed(old)

    def _too_many(self) -> CoreError:
        loop = self._turns.steps.loop
        assert loop.again is not None
        return CoreError(
            Kind.INTERNAL,
            f"its condition still holds after {loop.most} turns, the most that {loop.key}.max_turns allows: "
            f"{loop.again.text}",
        )

    def _cancel(self) -> None:
        if self._current is not None:
            self._current.cancel()


def _outputs(steps: LoopSteps, found: dict[str, Tensor]) -> list[Tensor]:
    """Return the answer of a loop: the tensors of its last turn."""
    tensors = [found.get(name, FLAGS[False]).renamed(name) for name in steps.made]
    return tensors + [FLAGS[name in found].renamed(presence(name)) for name in sorted(steps.unsure)]


def _begun(plan: EnsemblePlan, request: InferenceRequest) -> Reply:
    run = Run(plan, request)
    run.begin()
    return run.reply
