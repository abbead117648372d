"""Run: executes one request of an ensemble.

EnsembleChain ─► [Run] ─► the chains of the steps' models ─► Reply.  A step starts as soon as its inputs
exist; steps pass tensors on without a copy. Each response of a decoupled step creates a *branch*: the steps
that depend on it run once for each response. A step that its condition skips makes *absent* tensors, which
will never exist; an absent condition counts as false.
Source of the rules: ModelEnsembling in Triton's model_config.proto and its ensemble scheduler.
"""

from __future__ import annotations

from functools import partial

from core.errors import CoreError, Kind, cancelled
from core.pipeline.answers.split import wanted_tensors
from core.pipeline.ensemble.plan import Branch, EnsemblePlan
from core.pipeline.ensemble.slots import StepSlots
from core.pipeline.ensemble.steps import Step
from core.request import InferenceRequest
from core.response import InferenceResponse, Reply, new_response
from core.tensor import Tensor


class Run:
    """One request of an ensemble while it runs. Not thread-safe: call from the event loop only. Invariants:

    1. `outstanding` has the replies of steps that have not ended.
    2. After the final item of `reply` no step starts.
    """

    def __init__(self, plan: EnsemblePlan, request: InferenceRequest):
        self.reply = Reply(request)
        self.outstanding: set[Reply] = set()
        self._plan = plan
        self._request = request
        self._root = Branch(None, list(plan.steps), dict(request.inputs))
        self._skipped: list[Step] | None = None
        self._slots: dict[int, StepSlots] | None = None
        self._absent = None
        if len(request.inputs) != len(plan.signature.inputs):
            self._absent = {name for name in plan.signature.inputs if name not in request.inputs}

    def begin(self) -> None:
        """Start the steps that need only the request's inputs."""
        self.advance(self._root)
        self.finish_if_done()
        if not self.reply.finished:
            self._request.on_cancel(self._cancel_steps)

    def advance(self, branch: Branch) -> None:
        """Start the steps of a branch and its children whose inputs exist or are absent; send responses."""
        started = True
        while started and branch.waiting and not self.reply.finished:
            started = False
            for step in list(branch.waiting):
                # A step that was answered at once may have started this one, or ended the request.
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
        """Run a step whose inputs are known, skip it, or let it wait for a slot."""
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
            self._slots_of(step).acquire(partial(self._start, branch, step), branch.source)
        else:
            self._start(branch, step)

    def _runs(self, branch: Branch, step: Step) -> bool:
        """Return False if the condition is not `runs_if`, or a required input, or all inputs, are absent."""
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

    def _slots_of(self, step: Step) -> StepSlots:
        if self._slots is None:
            self._slots = {}
        if step.index not in self._slots:
            self._slots[step.index] = StepSlots(self._plan.most)
        return self._slots[step.index]

    def step_ended(self, step: Step) -> None:
        """Free the slot of a request to `step` that has ended, if steps have slots and the run goes on."""
        if self._slots is not None and not self.reply.finished:
            self._slots[step.index].release()

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
        request = self._request.copy_with(inputs)
        request.model_name = step.model
        request.model_version = step.version
        outputs = self._plan.requested
        request.outputs = step.wanted if outputs is None else outputs[step.index]
        request.deadline_ns = self._request.deadline_ns
        request.trace = self._request.trace
        request.shared = self._request.shared
        request.parent = self._request
        return request

    def new_branch(self, branch: Branch, step: Step, source: InferenceRequest) -> Branch:
        """Return a branch for one of several responses to `source`, the request to `step`."""
        rest = self._root.waiting if branch.parent is None else branch.waiting
        child = branch.new_child(step, list(rest))
        # If another step uses the same model, that model would wait for itself forever.
        if self._plan.most and not any(
            other.model == step.model for other in self._plan.steps if other is not step
        ):
            child.source = source
        return child

    def _answer(self, branch: Branch) -> None:
        """Send a branch's response, once, as soon as each wanted output exists or is known to be absent.

        A branch of another one sends nothing unless it made one of the outputs. If all outputs are absent, a
        decoupled ensemble sends nothing; another one ends with an error.
        """
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
        if not tensors:  # all were outputs of skipped steps
            if not signature.decoupled:
                self._end(self._no_output())
            return
        try:
            outputs = wanted_tensors(tensors, self._request, signature)
        except CoreError as error:
            self._end(error)
            return
        response = new_response(signature.name, signature.version, outputs, self._request.id, None)
        if signature.decoupled:
            self.reply.send(response, False)
        else:
            plan.ended(self._request, None)
            self.reply.send(response, True)
            self._root.clear()

    def _no_output(self) -> CoreError:
        skipped = ", ".join(map(str, self._skipped or ()))
        return CoreError(
            Kind.INVALID,
            f"in ensemble '{self._plan.signature.name}', no output was made of those wanted "
            f"({', '.join(self._plan.wanted)}): skipped by condition, or for want of an input: {skipped}",
        )

    def finish_if_done(self) -> None:
        """End the request if no step runs and none can start."""
        if self.outstanding or self.reply.finished:
            return
        if self._slots is not None and any(slots.waiting for slots in self._slots.values()):
            return  # the caller starts them next
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
        """End the request with the error of a step."""
        if not self.reply.finished:
            name = self._plan.signature.name
            self._end(CoreError(error.kind, f"in ensemble '{name}', {step}: {error.message}"))

    def _end(self, error: CoreError | None) -> None:
        self._plan.ended(self._request, error)
        self.reply.send(error, True)
        self._root.clear()
        self._cancel_steps()

    def _cancel_steps(self) -> None:
        if self._slots is not None:
            for slots in self._slots.values():
                slots.clear()
        for reply in list(self.outstanding):
            reply.cancel()


class StepAnswers:
    """Listener of the reply of one step."""

    def __init__(self, run: Run, branch: Branch, step: Step, reply: Reply):
        self._run = run
        self._branch = branch
        self._step = step
        self._reply = reply
        self._first = True

    def arrived(self, item: InferenceResponse | CoreError | None, final: bool) -> None:
        """Take one item of the step's reply."""
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
        # The only response stays in the branch; each of several creates a new branch.
        into = self._branch
        if not (self._first and final):
            into = self._run.new_branch(into, self._step, self._reply.request)
        self._first = False
        for tensor in response.outputs:
            ours = self._step.outputs[tensor.name]
            into.tensors[ours] = tensor if ours == tensor.name else tensor.renamed(ours)
        self._run.advance(into)


def of_rank(tensor: Tensor, rank: int) -> Tensor:
    """Return the tensor with a batch dimension of 1 added or removed if that gives it the rank.

    Otherwise return it unchanged; the model that gets it refuses it.
    """
    shape = tensor.shape
    if len(shape) == rank - 1:
        return tensor.reshaped((1, *shape))
    if len(shape) == rank + 1 and shape[0] == 1:
        return tensor.reshaped(shape[1:])
    return tensor


def holds(condition: Tensor) -> bool:
    """Return the one value of a BOOL tensor's elements. Raise CoreError(INVALID) if both or none occur."""
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
