"""Operation: one change of models, in all workers that take part in it.

Each worker loads beside what it serves and says, for each model, whether it could; none takes a new
version into service before all have said so. What one could not load, nobody serves.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

Tell = Callable[[int, int, str, str], None]


@dataclass
class _Ballot:
    """What has been said about one model.

    votes      worker → what it has against it, "" for nothing
    objection  what was decided, None as long as nothing is
    """

    votes: dict[int, str] = field(default_factory=dict)
    objection: str | None = None


class Operation:
    """Loop thread of the supervisor.

    tell   (worker, operation, model, objection) → None: brings a decision to a worker that has voted
    """

    def __init__(self, number: int, workers: Collection[int], tell: Tell):
        self.number = number
        self._tell = tell
        self._busy = set(workers)
        self._failures: dict[int, str] = {}  # of those that have ended without success
        self._ballots: dict[str, _Ballot] = {}

    def vote(self, worker: int, model: str, objection: str) -> None:
        """A worker has loaded a model, or has tried to; it waits for the decision."""
        ballot = self._ballots.setdefault(model, _Ballot())
        ballot.votes[worker] = objection
        if ballot.objection is not None:
            self._tell(worker, self.number, model, ballot.objection)
        else:
            self._decide(model, ballot)

    def ended(self, worker: int, failure: str = "") -> None:
        """A worker has come to its end, or has died. A second end says nothing new.

        Where it had not voted it had nothing to load, and agrees: it looked before the files changed,
        and the next look shows them. Unless it failed.
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
