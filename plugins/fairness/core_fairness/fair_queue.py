"""FairQueue: the layer of one model. Callers take turns before the model's own queue.

admit ─► [FairQueue] ─► CallerFlow ─► RoundRobin ─► the model's queue ─► instances
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING

from core.backend import Model
from core.config import Signature
from core.errors import (
    CoreError,
    DeadlineExceeded,
    cancelled,
    described,
    internal,
    unavailable,
)
from core.governing import Handler
from core.request import SEQUENCE_START, InferenceRequest
from core.response import Reply
from core_fairness.callers import Callers
from core_fairness.clients import Clients, client_of
from core_fairness.cost import Rows, Tokens, counts_tokens
from core_fairness.flow import CallerFlow, Waiting
from core_fairness.max_waiting import MaxWaiting
from core_fairness.policies import QueuePolicies
from core_fairness.round_robin import RoundRobin
from core_fairness.settings import Fairness
from core_fairness.waiting_table import WaitingTable
from core_fairness.window import Window

if TYPE_CHECKING:
    from core.pipeline import Chain
    from core_fairness.group import Member

LOOK_S = 0.005  # between looks for an instance that has become idle without an answer


class FairQueue:
    """Handler that holds requests of one model version back, and lets them through by turns.

    A request from inside the server (a model that calls models) passes straight, and so does a request whose
    client has another one in the model or in its group: it could wait for itself. The steps of an ensemble
    wait like requests of its caller.
    Not thread-safe: call from the event loop only.

    model      about to be loaded
    name_of    number of a caller → its name
    by_caller  whether callers take turns; else only the models of a group do
    table      counts the requests that wait in all workers; None without other workers
    used       what the requests inside take of the window
    waiting    number of requests that wait
    straight   number of requests that have passed without a turn
    callers    who has what
    member     the model in its group; None without one
    """

    def __init__(
        self,
        model: Model,
        name_of: Callable[[int], str],
        loop: asyncio.AbstractEventLoop,
        *,
        by_caller: bool = True,
        table: WaitingTable | None = None,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ):
        config = model.config
        self.name = model.name
        self.callers = Callers(name_of, by_caller=by_caller)
        self.window = Window(config, clock_ns)
        self.used = 0
        self.waiting = 0
        self.straight = 0
        self.member: Member | None = None
        self.cost: Rows = Rows()
        self._most = MaxWaiting(model, self.callers, table)
        self._loop = loop
        self._now_ns = clock_ns
        self._model = model
        self._policies = QueuePolicies.of(config)
        self._has_sequences = config.HasField("sequence_batching")
        self._turns: RoundRobin[CallerFlow] = RoundRobin()
        self._sequences: dict[int | str, OrderedDict[Waiting, None]] = {}  # that wait
        self._inside = Clients()  # of a model without a group
        self._by_level: Counter[int] = Counter()  # requests that wait
        self._pumping = False
        self._adapting = False
        self._look: asyncio.TimerHandle | None = None
        self._inner: Handler

    def layer(self, inner: Handler) -> Handler:
        """Return the handler around `inner`, for core_layers."""
        self._inner = inner
        return self

    def ready(self, chain: Chain, signature: Signature, fairness: Fairness) -> None:
        """Begin to serve: the version is loaded."""
        self.window.chain = chain
        unit = fairness.unit_of(self.name)
        if unit == "tokens" or (unit is None and counts_tokens(signature)):
            self.cost = Tokens()
        self.set(fairness)

    def set(self, fairness: Fairness) -> None:
        """Take other weights and bounds. They hold for requests that wait, too."""
        self.callers.set(fairness.of(self.name))

    @property
    def _clients(self) -> Clients:
        return self._inside if self.member is None else self.member.group.inside

    # requests ------------------------------------------------------------------

    def __call__(self, request: InferenceRequest) -> Reply:
        client = client_of(request)
        if not client.caller or (client is not request and client in self._clients):
            return self._pass(request, client)
        flow = self.callers.of(client.caller)
        sequence = request.correlation_id if self._has_sequences else 0
        if sequence:
            ahead = self._sequences.get(sequence)
            if ahead:
                flow = next(iter(ahead)).flow or flow
            elif not request.flags & SEQUENCE_START:
                return self._pass(request, client)
        self._check_bounds(entry := _entry(self, request, flow), flow)
        self._queue(entry, sequence)
        self.pump()
        if not entry.sent and (error := self._most.enter(entry)) is not None:
            self._leave(entry)
            raise self._rejected(request, flow, error)
        return entry.reply

    def _pass(self, request: InferenceRequest, client: InferenceRequest) -> Reply:
        """Let a request through without a turn. Its caller is charged all the same."""
        flow = self.callers.of(client.caller) if client.caller else None
        self.straight += 1
        self._send(entry := _entry(self, request, flow))
        return entry.reply

    def _check_bounds(self, entry: Waiting, flow: CallerFlow) -> None:
        """Raise CoreError if the caller, or a level of the model, has too many requests that wait.

        If the level has, the caller with the most of them in proportion to its weight loses its last one.
        """
        request = entry.request
        if (exhausted := self._most.error(request, flow)) is not None:
            raise self._rejected(request, flow, exhausted)
        self._policies = self._policies.current(self._model.config)
        level = self._policies.level(request)
        chain = self.window.chain
        inside = 0
        if chain is not None:
            inside = chain.pending_by_priority.get(level, 0) if level else chain.pending
        most = self._policies.size(level)
        if not most or self._by_level[level] + inside < most:
            return
        longest = self.callers.longest(level)
        error = unavailable("Exceeds maximum queue size")
        if longest.count(level) / longest.weight <= (flow.count(level) + 1) / flow.weight:
            raise self._rejected(request, flow, error)
        # Before another one loses its place to this one.
        if (exhausted := self._most.enter(entry)) is not None:
            raise self._rejected(request, flow, exhausted)
        longest.counts.refused += 1
        self._refuse(longest.last(level), error, "REJECTED")

    def _rejected(self, request: InferenceRequest, flow: CallerFlow, error: CoreError) -> CoreError:
        """Count a request that is refused before it waits; return its error."""
        flow.counts.refused += 1
        self._count_failure("REJECTED", request)
        return error

    def _queue(self, entry: Waiting, sequence: int | str) -> None:
        flow, request = entry.flow, entry.request
        assert flow is not None
        level = 0 if self._has_sequences else self._policies.level(request)
        flow.add(entry, level)
        self.waiting += 1
        self._by_level[level] += 1
        if sequence:
            self._sequences.setdefault(sequence, OrderedDict())[entry] = None
        self._turns.enter(flow)
        entry.on_cancel = lambda: self._cancelled(entry)
        request.on_cancel(entry.on_cancel)
        if timeout_s := self._policies.timeout_s(level, request):
            entry.timer = self._loop.call_later(timeout_s, self._expired, entry)

    def _leave(self, entry: Waiting) -> None:
        """Take a request out of its flow."""
        flow, request = entry.flow, entry.request
        assert flow is not None
        flow.remove(entry)
        self.waiting -= 1
        self._by_level[entry.level] -= 1
        entry.sent = True
        self._most.leave(entry)
        if (line := self._sequences.get(request.correlation_id)) is not None:
            line.pop(entry, None)
            if not line:
                del self._sequences[request.correlation_id]
        if entry.timer is not None:
            entry.timer.cancel()
        if entry.on_cancel is not None:
            request.off_cancel(entry.on_cancel)
            entry.on_cancel = None

    def _refuse(self, entry: Waiting, error: CoreError, reason: str) -> None:
        """End a request that waits."""
        self._leave(entry)
        self._count_failure(reason, entry.request)
        entry.reply.fail(error)

    def _cancelled(self, entry: Waiting) -> None:
        if not entry.sent and entry.flow is not None:
            entry.flow.counts.left += 1
            self._refuse(entry, cancelled(), "CANCELED")

    def _expired(self, entry: Waiting) -> None:
        if not entry.sent and entry.flow is not None:
            entry.flow.counts.left += 1
            self._refuse(entry, unavailable("Request timeout expired"), "REJECTED")

    def _count_failure(self, reason: str, request: InferenceRequest) -> None:
        if (chain := self.window.chain) is not None:
            chain.statistics.failed(reason, self._now_ns() - request.arrival_ns)

    # turns -----------------------------------------------------------------------

    @property
    def may_send(self) -> bool:
        """Whether a request waits that the window has, or makes, room for."""
        return self.waiting > 0 and self.window.make_room(self.used)

    def pump(self) -> None:
        """Let requests through, as long as there is room."""
        if self.member is not None:
            self.member.group.pump(self.member)
            self._look_later()
            return
        if self._pumping:  # an instance has answered within `send_next`: the outer call goes on
            return
        self._pumping = True
        try:
            while self.may_send and self.send_next():
                pass
        finally:
            self._pumping = False
        self._look_later()

    def send_next(self) -> bool:
        """Let the request through whose turn it is; refuse it if its deadline has passed.

        Return whether there was one.
        """
        flow = self._turns.next()
        if flow is None:
            return False
        entry = flow.first()
        self._leave(entry)
        deadline_ns = entry.request.deadline_ns
        if deadline_ns and deadline_ns <= self._now_ns():
            flow.counts.left += 1
            self._count_failure("DEADLINE", entry.request)
            entry.reply.fail(DeadlineExceeded())
            return True
        self._send(entry)
        if self._has_sequences:
            self._send_sequence(entry.request.correlation_id)
        return True

    def _send_sequence(self, sequence: int | str) -> None:
        """Let the other requests of a sequence through, which has begun: others wait for its end."""
        for entry in list(self._sequences.get(sequence, ())):
            self._leave(entry)
            self._send(entry)

    def _send(self, entry: Waiting) -> None:
        request, flow = entry.request, entry.flow
        entry.sent = True
        self.used += entry.size
        if flow is not None:
            flow.in_flight += 1
            counts = flow.counts
            counts.requests += 1
            counts.cost += entry.cost
            counts.wait_ns += self._now_ns() - request.arrival_ns
            self._turns.charge(flow, entry.cost)
        if request.parent is not None:
            entry.inside = self._clients
            entry.inside.enter(request)
        if self.member is not None and (turn := self.member.turn) is not None:
            entry.turn = turn
            turn.size += entry.size
            turn.open += 1
        entry.usage = self.cost.begin(request)
        try:
            reply = self._inner(request)
        except Exception as error:  # whatever it is, the request must end, and give its place back
            named = error if isinstance(error, CoreError) else internal(described(error))
            entry(named, True)
            return
        reply.listen(entry)

    def _ended(self, entry: Waiting) -> None:
        """Count the end of a request that was let through, and let others through in its place."""
        self.used -= entry.size
        self.window.ended(self.used)
        cost = self.cost.end(entry.usage, entry.cost)
        if (flow := entry.flow) is not None:
            flow.in_flight -= 1
            flow.counts.cost += cost - entry.cost
            if cost != entry.cost:
                self._turns.correct(flow, cost - entry.cost)
            self.callers.ended(flow)
        if self.member is not None and entry.turn is not None:
            self.member.ended(entry.turn)
        if self.waiting and not self._adapting:
            # When the instance has taken its next batch.
            self._adapting = True
            self._loop.call_soon(self._adapt)
        self.pump()

    def _adapt(self) -> None:
        self._adapting = False
        self.window.adapt()

    def _look_later(self) -> None:
        """Look again soon while requests wait: an instance may become idle without an answer."""
        if not self.waiting:
            self._turns.clear()
        elif self._look is None:
            self._look = self._loop.call_later(LOOK_S, self._look_now)

    def _look_now(self) -> None:
        self._look = None
        if self.waiting:
            self.pump()


def _entry(queue: FairQueue, request: InferenceRequest, flow: CallerFlow | None) -> Waiting:
    size = max(1, request.rows) if queue.window.rows else 1
    return Waiting(request, flow, size, queue.cost.estimate(request), queue._ended)
