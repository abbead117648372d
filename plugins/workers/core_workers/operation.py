"""Operation: one change of models in all workers that take part in it.

Each worker loads a new version while it serves the old one, and votes on each model. Workers serve the new
version only after all have voted for it. If one worker cannot load it, none serves it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

Tell = Callable[[int, int, str, str], None]


@dataclass
class _Ballot:
    """The votes on one model.

    votes      worker → its objection, "" if it agrees
    objection  the decision: "" if all agree, else an objection; None before the decision
    """

    votes: dict[int, str] = field(default_factory=dict)
    objection: str | None = None


class Operation:
    """The votes of one change. Not thread-safe: use it on the supervisor's event loop only.

    number    of the operation
    workers   those that take part
    tell      (worker, operation, model, objection) → None: sends a decision to a worker that has voted
    """

    def __init__(self, number: int, workers: Collection[int], tell: Tell):
        self.number = number
        self._tell = tell
        self._busy = set(workers)
        self._failures: dict[int, str] = {}  # worker that has ended without success → its failure
        self._ballots: dict[str, _Ballot] = {}

    def vote(self, worker: int, model: str, objection: str) -> None:
        """Count the vote of a worker that has loaded a model or has failed to, and waits for the decision.

        Tell it the decision if there is one already; else decide if this vote allows it: at the first
        objection, or when all workers have voted or ended their parts.
        """
        ballot = self._ballots.setdefault(model, _Ballot())
        ballot.votes[worker] = objection
        if ballot.objection is not None:
            self._tell(worker, self.number, model, ballot.objection)
        else:
            self._decide(model, ballot)

    def ended(self, worker: int, failure: str = "") -> None:
        """Note that a worker has ended its part, or has died; decide where this allows it.

        A second call for a worker does nothing. `failure` is the reason for which it failed, "" for none. A
        worker without a failure agrees with the models on which it has not voted: it polled the repository
        before the files changed, and the next poll finds them.
        """
        if worker not in self._busy:
            return
        self._busy.discard(worker)
        if failure:
            self._failures[worker] = failure
        for model, ballot in self._ballots.items():
            if ballot.objection is None:
                self._decide(model, ballot)

    def _decide(self, model: str, ballot: _Ballot) -> None:
        objections = [
            *(f"worker {worker}: {text}" for worker, text in ballot.votes.items() if text),
            *(text for worker, text in self._failures.items() if worker not in ballot.votes),
        ]
        if objections or self._busy <= set(ballot.votes):
            ballot.objection = objections[0] if objections else ""
            for worker in ballot.votes:
                self._tell(worker, self.number, model, ballot.objection)
