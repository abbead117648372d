"""Data of ensemble runs: EnsemblePlan is what requests share, Branch the tensors of one request."""

from __future__ import annotations

from collections.abc import Callable

from core.config.signature import Signature
from core.errors import CoreError
from core.pipeline.ensemble.steps import Step
from core.request import InferenceRequest, RequestedOutput
from core.response import Reply
from core.tensor import Tensor

Infer = Callable[[InferenceRequest], Reply]
Ended = Callable[[InferenceRequest, "CoreError | None"], None]


class EnsemblePlan:
    """What all requests for the same outputs share.

    signature   inputs and outputs of the ensemble
    steps       the steps that the outputs need
    wanted      names of the outputs, in their order
    infer       gives a request to the model that it names
    ended       called with a request that has ended, and its error or None
    most        most requests to one step that one request may have running; 0 for no limit
    ranks       output → the rank that clients see, if the model has a batch dimension and the ensemble has
                none, or the reverse; None if there is no such output
    requested   index of a step → the outputs that its model is asked for, if a tensor may stay on a device;
                None if all tensors go to host memory
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
        requested: dict[int, tuple[RequestedOutput, ...]] | None = None,
    ):
        self.signature = signature
        self.steps = steps
        self.wanted = wanted
        self.infer = infer
        self.ended = ended
        self.most = most
        self.ranks = ranks
        self.requested = requested


class Branch:
    """Tensors of one request, and the steps that wait for tensors.

    The first branch has the request's inputs. Each response of a decoupled step creates a child branch, which
    also sees the tensors of its parents.

    children   child branches that may have steps to run, in their order
    source     the request to the decoupled step that created the branch, if that step can be paused
    """

    def __init__(self, parent: Branch | None, waiting: list[Step], tensors: dict[str, Tensor]):
        self.parent = parent
        self.waiting = waiting
        self.tensors = tensors
        self.absent: set[str] | None = None  # names of the outputs of skipped steps
        self.children: dict[Branch, None] | None = None
        self.source: InferenceRequest | None = None
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
        """Return whether the tensor will never exist, because its step was skipped."""
        branch: Branch | None = self
        while branch is not None:
            if branch.absent is not None and name in branch.absent:
                return True
            branch = branch.parent
        return False

    def skip(self, step: Step) -> None:
        """Mark the outputs of a step as absent, in this branch and its children."""
        if self.absent is None:
            self.absent = set()
        self.absent.update(step.outputs.values())

    def new_child(self, step: Step, rest: list[Step]) -> Branch:
        """Add and return a child for a response of `step`, with the steps of `rest` that depend on `step`."""
        made, dependent = set(step.outputs.values()), []
        found = True
        while found:
            found = False
            for other in rest:
                if other not in dependent and made & other.needs:
                    dependent.append(other)
                    made |= set(other.outputs.values())
                    found = True
        child = Branch(self, dependent, {})
        self.add(child)
        return child

    def add(self, child: Branch) -> None:
        """Add a child that may have steps to run, and this branch to its parent in the same way."""
        if self.children is None:
            self.children = {}
        self.children[child] = None
        if self.parent is not None:
            self.parent.add(self)

    def drop_if_done(self) -> None:
        """Remove this branch from its parent if it has answered and has neither steps nor children left.

        A stream has thousands of branches, and each keeps its tensors.
        """
        if self.answered and not self.waiting and not self.children and self.parent is not None:
            kept = self.parent.children
            if kept is not None:
                kept.pop(self, None)

    def clear(self) -> None:
        """Remove all children here and below. They refer to their parents, which would keep them alive."""
        children, self.children = self.children, None
        if children is not None:
            for child in children:
                child.clear()
