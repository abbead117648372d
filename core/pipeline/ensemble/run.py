"""One request on its way through the steps of an ensemble.

EnsembleChain ─► [Run] ─► the chains of the steps' models ─► Reply.  A step runs as soon as its inputs
are there; tensors go from step to step without a copy. Each answer of a decoupled step opens a
*branch*: what depends on it runs once for each of its answers. What a condition skips makes *absent*
tensors: known never to come.
Source of the rules: ModelEnsembling in Triton's model_config.proto and its ensemble scheduler.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from core.config.signature import Signature
from core.errors import CoreError, Kind, cancelled
from core.pipeline.answers.split import wanted_tensors
from core.pipeline.ensemble.slots import Slots
from core.pipeline.ensemble.steps import Step
from core.request import InferenceRequest, RequestedOutput
from core.response import InferenceResponse, Reply, made_response
from core.tensor import Tensor

Infer = Callable[[InferenceRequest], Reply]
Ended = Callable[[InferenceRequest, "CoreError | None"], None]


class Plan:
    """What requests that want the same outputs share.

    signature   of the ensemble
    steps       those without which the outputs would not be made
    wanted      names of the outputs, in their order
    infer       gives a request to the model that it names
    ended       told of the last answer to a request: None, or the error that it is
    most        requests to one step that one request may have running; 0 for any number
    ranks       output → the rank that clients see, where the model that makes it has a batch dimension and
                the ensemble has none, or the other way round; None for no such output
    asked       index of a step → what its model is asked for, where a tensor may stay on a device; None where
                all are wanted in host memory
    """

    def __init__(
        self,
        signature: Signature,
        steps: list[Step],
        wanted: list[str],
        infer: Infer,
        ended: Ended,
        most: int = 0,
        ranks: dict[str, int] | None = None,
        asked: dict[int, tuple[RequestedOutput, ...]] | None = None,
    ):
        self.signature = signature
        self.steps = steps
        self.wanted = wanted
        self.infer = infer
        self.ended = ended
        self.most = most
        self.ranks = ranks
        self.asked = asked


class Branch:
    """The tensors that belong together, and the steps that still wait for theirs.

    The first branch holds the request's inputs. Each answer of a decoupled step makes another one,
    which sees the tensors of the branch it grew from.

    children  branches that grew from it and may have something to do yet, in their order
    made_by   the request to the decoupled step whose answer it is, if that may be held back
    """

    def __init__(self, parent: Branch | None, waiting: list[Step], tensors: dict[str, Tensor]):
        self.parent = parent
        self.waiting = waiting
        self.tensors = tensors
        self.absent: set[str] | None = None  # names of what skipped steps would have made
        self.children: dict[Branch, None] | None = None
        self.made_by: InferenceRequest | None = None
        self.answered = False

    def find(self, name: str) -> Tensor | None:
        branch: Branch | None = self
        while branch is not None:
            tensor: Tensor | None = branch.tensors.get(name)
            if tensor is not None:
                return tensor
            branch = branch.parent
        return None

    def lacks(self, name: str) -> bool:
        """Whether the tensor will never come, since the step that makes it was skipped."""
        branch: Branch | None = self
        while branch is not None:
            if branch.absent is not None and name in branch.absent:
                return True
            branch = branch.parent
        return False

    def skip(self, step: Step) -> None:
        """The step does not run in this branch, nor in those that grow from it."""
        if self.absent is None:
            self.absent = set()
        self.absent.update(step.outputs.values())

    def grow(self, step: Step, rest: list[Step]) -> Branch:
        """A branch for one of several answers of `step`, with those of `rest` that depend on it."""
        made, dependent = set(step.outputs.values()), []
        grown = True
        while grown:
            grown = False
            for other in rest:
                if other not in dependent and made & other.needs:
                    dependent.append(other)
                    made |= set(other.outputs.values())
                    grown = True
        child = Branch(self, dependent, {})
        self.keep(child)
        return child

    def keep(self, child: Branch) -> None:
        """The child may have something to do, and so have those that it grew from."""
        if self.children is None:
            self.children = {}
        self.children[child] = None
        if self.parent is not None:
            self.parent.keep(self)

    def drop_if_done(self) -> None:
        """A branch that has given its answer, and has nothing to start, is looked at no more: a stream
        has thousands, and each holds its tensors."""
        if self.answered and not self.waiting and not self.children and self.parent is not None:
            kept = self.parent.children
            if kept is not None:
                kept.pop(self, None)

    def let_go(self) -> None:
        """The request has ended: branches that hold each other go without the garbage collector."""
        children, self.children = self.children, None
        if children is not None:
            for child in children:
                child.let_go()


class Run:
    """Invariants:

    1. `outstanding` are the steps whose last answer has not come.
    2. After the final item of `reply` nothing is started any more.
    """

    def __init__(self, plan: Plan, request: InferenceRequest):
        self.reply = Reply(request)
        self.outstanding: set[Reply] = set()
        self._plan = plan
        self._request = request
        self._root = Branch(None, list(plan.steps), dict(request.inputs))
        self._skipped: list[Step] | None = None
        self._slots: dict[int, Slots] | None = None
        self._absent = None
        if len(request.inputs) != len(plan.signature.inputs):
            self._absent = {name for name in plan.signature.inputs if name not in request.inputs}

    def begin(self) -> None:
        """Start the steps whose inputs the request has."""
        self.advance(self._root)
        self.finish_if_done()
        if not self.reply.finished:
            self._request.on_cancel(self._cancel_steps)

    def advance(self, branch: Branch) -> None:
        """Start every step of a branch, and of those that grew from it, whose inputs are there."""
        started = True
        while started and branch.waiting and not self.reply.finished:
            started = False
            for step in list(branch.waiting):
                # An answer that came at once may have started it, or ended everything.
                if step in branch.waiting and self._has_inputs(branch, step):
                    branch.waiting.remove(step)
                    self._begin(branch, step)
                    started = True
        self._answer(branch)
        if branch.children is not None:
            for child in list(branch.children):
                self.advance(child)
        branch.drop_if_done()

    def _has_inputs(self, branch: Branch, step: Step) -> bool:
        for name in step.needs:
            if branch.find(name) is not None or (self._absent is not None and name in self._absent):
                continue
            if self._skipped is None or not branch.lacks(name):
                return False
        return True

    def _begin(self, branch: Branch, step: Step) -> None:
        """All that a step needs is known: run it, or skip it."""
        if self._request.cancelled:
            self._end(cancelled())
            return
        try:
            runs = self._runs(branch, step)
        except CoreError as error:
            self.fail(step, error)
            return
        if not runs:
            if self._skipped is None:
                self._skipped = []
            self._skipped.append(step)
            branch.skip(step)
        elif self._plan.most:
            self._slots_of(step).take(partial(self._start, branch, step), branch.made_by)
        else:
            self._start(branch, step)

    def _runs(self, branch: Branch, step: Step) -> bool:
        """Whether a step's condition holds and the inputs that its model needs were made."""
        if step.condition is not None:
            tensor = branch.find(step.condition)
            if (tensor is not None and holds(tensor)) is not step.runs_if:
                return False
        if self._skipped is None:
            return True
        found = lost = False
        for theirs, ours in step.inputs.items():
            if branch.find(ours) is not None:
                found = True
            elif branch.lacks(ours):
                lost = True
                if theirs not in step.optional:
                    return False
        return found or not lost

    def _slots_of(self, step: Step) -> Slots:
        if self._slots is None:
            self._slots = {}
        if step.index not in self._slots:
            self._slots[step.index] = Slots(self._plan.most)
        return self._slots[step.index]

    def step_ended(self, step: Step) -> None:
        """The last answer of one request to a step has come: another may begin."""
        if self._slots is not None and not self.reply.finished:
            self._slots[step.index].give_back()

    def _start(self, branch: Branch, step: Step) -> None:
        inputs: dict[str, Tensor] = {}
        for theirs, ours in step.inputs.items():
            tensor = branch.find(ours)
            if tensor is not None:
                if step.ranks is not None and theirs in step.ranks:
                    tensor = of_rank(tensor, step.ranks[theirs])
                inputs[theirs] = tensor if theirs == ours else tensor.renamed(theirs)
        try:
            reply = self._plan.infer(self._request_of(step, inputs))
        except CoreError as error:
            self.fail(step, error)
            return
        self.outstanding.add(reply)
        reply.listen(StepAnswers(self, branch, step, reply).arrived)

    def _request_of(self, step: Step, inputs: dict[str, Tensor]) -> InferenceRequest:
        asked = self._request
        request = InferenceRequest(step.model, inputs)
        request.model_version = step.version
        request.id = asked.id
        kept = self._plan.asked
        request.outputs = step.wanted if kept is None else kept[step.index]
        request._parameters = asked._parameters
        request.correlation_id = asked.correlation_id
        request.flags = asked.flags
        request.priority = asked.priority
        request.timeout_us = asked.timeout_us
        request.deadline_ns = asked.deadline_ns
        request.trace = asked.trace
        request.shared = asked.shared
        request.asked_by = asked
        return request

    def grown(self, branch: Branch, step: Step, asked: InferenceRequest) -> Branch:
        """A branch for one of several answers to `asked`, the request to `step`."""
        rest = self._root.waiting if branch.parent is None else branch.waiting
        child = branch.grow(step, list(rest))
        # A model that waits for itself, as another step, would wait for ever.
        if self._plan.most and not any(
            other.model == step.model for other in self._plan.steps if other is not step
        ):
            child.made_by = asked
        return child

    def _answer(self, branch: Branch) -> None:
        """Send what a branch adds to the wanted outputs, once all of them are there."""
        if branch.answered or self.reply.finished:
            return
        plan = self._plan
        tensors: list[Tensor] = []
        own = branch.parent is None
        for name in plan.wanted:
            tensor = branch.find(name)
            if tensor is None:
                if self._skipped is not None and branch.lacks(name):
                    continue
                return
            own = own or name in branch.tensors
            if plan.ranks is not None and name in plan.ranks:
                tensor = of_rank(tensor, plan.ranks[name])
            tensors.append(tensor)
        if not own:
            return
        branch.answered = True
        signature = plan.signature
        if not tensors:  # of skipped steps only
            if not signature.decoupled:
                self._end(self._nothing_made())
            return
        try:
            outputs = wanted_tensors(tensors, self._request, signature)
        except CoreError as error:
            self._end(error)
            return
        response = made_response(signature.name, signature.version, outputs, self._request.id, None)
        if signature.decoupled:
            self.reply.send(response, False)
        else:
            plan.ended(self._request, None)
            self.reply.send(response, True)
            self._root.let_go()

    def _nothing_made(self) -> CoreError:
        skipped = ", ".join(map(str, self._skipped or ()))
        return CoreError(
            Kind.INVALID,
            f"in ensemble '{self._plan.signature.name}', no output was made of those wanted "
            f"({', '.join(self._plan.wanted)}): skipped by condition, or for want of an input: {skipped}",
        )

    def finish_if_done(self) -> None:
        """No step runs: if there was no last answer, nothing can bring it any more."""
        if self.outstanding or self.reply.finished:
            return
        if self._slots is not None and any(slots.waiting for slots in self._slots.values()):
            return  # they begin behind who called
        signature = self._plan.signature
        if self._request.cancelled:
            self._end(cancelled())
            return
        if signature.decoupled:
            self._end(None)
            return
        self._end(
            CoreError(
                Kind.INVALID,
                f"in ensemble '{signature.name}', unexpected deadlock, at least one output is "
                "not set while no more ensemble steps can be made",
            )
        )

    def fail(self, step: Step, error: CoreError) -> None:
        """A step has an error: it is the answer to the whole request."""
        if not self.reply.finished:
            name = self._plan.signature.name
            self._end(CoreError(error.kind, f"in ensemble '{name}', {step}: {error.message}"))

    def _end(self, error: CoreError | None) -> None:
        self._plan.ended(self._request, error)
        self.reply.send(error, True)
        self._root.let_go()
        self._cancel_steps()

    def _cancel_steps(self) -> None:
        if self._slots is not None:
            for slots in self._slots.values():
                slots.clear()
        for reply in list(self.outstanding):
            reply.cancel()


class StepAnswers:
    """What comes back from one step of a run."""

    def __init__(self, run: Run, branch: Branch, step: Step, reply: Reply):
        self._run = run
        self._branch = branch
        self._step = step
        self._reply = reply
        self._first = True

    def arrived(self, item: InferenceResponse | CoreError | None, final: bool) -> None:
        """The listener of the step's reply."""
        run = self._run
        step = self._step
        if final:
            run.outstanding.discard(self._reply)
        if isinstance(item, CoreError):
            run.fail(step, item)
        elif item is not None and not run.reply.finished:
            self._take(item, final)
        if final:
            run.step_ended(step)
        run.finish_if_done()

    def _take(self, response: InferenceResponse, final: bool) -> None:
        # The only answer stays in the branch; one of several opens a branch of its own.
        into = self._branch
        if not (self._first and final):
            into = self._run.grown(into, self._step, self._reply.request)
        self._first = False
        for tensor in response.outputs:
            ours = self._step.outputs[tensor.name]
            into.tensors[ours] = tensor if ours == tensor.name else tensor.renamed(ours)
        self._run.advance(into)


def of_rank(tensor: Tensor, rank: int) -> Tensor:
    """The tensor with a batch dimension of 1 more or less if that gives it the rank, else as it is.

    What still does not fit is refused by the model that gets it.
    """
    shape = tensor.shape
    if len(shape) == rank - 1:
        return tensor.reshaped((1, *shape))
    if len(shape) == rank + 1 and shape[0] == 1:
        return tensor.reshaped(shape[1:])
    return tensor


def holds(condition: Tensor) -> bool:
    """Whether the elements of a BOOL tensor are true. Raises CoreError(INVALID) if they differ."""
    values = condition.array
    true = bool(values.all())
    if not values.size or true is not bool(values.any()):
        raise CoreError(
            Kind.INVALID,
            f"the condition '{condition.name}' has shape {list(values.shape)} with "
            + ("true and false" if values.size else "no element")
            + "; all rows of a request take the same way, so they must be equal",
        )
    return true
