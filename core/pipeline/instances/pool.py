"""Pool: the open instances of one model version. It knows which are idle and gives batches to them."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable

from core.backend import Model, ModelInstance
from core.errors import CoreError, unavailable
from core.future_setter import FutureSetter
from core.pipeline.answers.context import DeliveryContext
from core.pipeline.answers.delivery import BatchDelivery, new_delivery
from core.pipeline.batching.queue import QueuedRequest
from core.pipeline.instances.auto import AutoRunner
from core.pipeline.instances.callback import CallbackRunner
from core.pipeline.instances.rate_limiter import RateLimiter
from core.pipeline.instances.runner import (
    InlineRunner,
    InstanceRunner,
    LoopRunner,
    RunnerOwner,
    ThreadRunner,
)
from core.pipeline.instances.specs import InstanceSpec


class Pool(RunnerOwner):
    """The open instances of one model version.

    An instance is added in two steps: `open` creates it, `admit` puts it into service. It is removed in two
    steps: `retire` lets it get no new batch; it closes when its batches have ended.
    Not thread-safe: call from the event loop only.

    context    shared state of the deliveries
    limiter    of the server; None without a rate limit
    runners    instances in service, broken ones included
    passive    instances that are open and do not serve
    broken     why no instance can serve; None while one can
    """

    def __init__(self, context: DeliveryContext, limiter: RateLimiter | None = None):
        self.runners: list[InstanceRunner] = []
        self.passive: list[InstanceRunner] = []
        self.broken: BaseException | None = None
        self._on_idle: Callable[[], None] = _ignore
        self._context = context
        self._idle: list[InstanceRunner] = []
        self._unready = False  # whether an instance was not ready when readiness last changed
        # Idle and not ready, while another instance is ready.
        self._aside: list[InstanceRunner] = []
        self._limiter = limiter
        self._trials: dict[InstanceRunner, asyncio.Future[None]] = {}
        self._retiring: dict[InstanceRunner, asyncio.Task[None]] = {}

    def connect(
        self, on_idle: Callable[[], None], put_back: Callable[[QueuedRequest], None]
    ) -> None:
        """Name the callbacks of the scheduler that uses the pool. The scheduler calls this once.

        on_idle    called when an instance has become idle, or the last one has broken
        put_back   called with a request that asks for another execution
        """
        self._on_idle = on_idle
        self._context.put_back = put_back

    @property
    def ready(self) -> bool:
        """Whether an instance can serve."""
        return any(w.broken is None and w.instance.ready() for w in self.runners)

    async def check(self) -> bool:
        """Ask all instances, and return whether one can serve."""
        asked = [w.instance.check() for w in self.runners if w.broken is None]
        return any(await asyncio.gather(*asked))

    @property
    def takes_device(self) -> bool:
        """Whether an instance accepts arrays in the memory of a device."""
        return any(runner.on_device for runner in self.runners)

    @property
    def has_idle(self) -> bool:
        """Whether an instance is idle."""
        return bool(self._idle or self._aside)

    def is_idle(self, runner: InstanceRunner) -> bool:
        return runner in self._idle or runner in self._aside

    def claim(self, runner: InstanceRunner | None = None) -> InstanceRunner | None:
        """Return an idle runner that may execute now: the given one, or the one that is idle for longest.

        Return None if there is none; `on_idle` is called when that may have changed. Call `run` next, or
        `unclaim` if there is nothing to run.
        """
        if runner is None and self._limiter is None:
            return self._idle[0] if self._idle else None
        for idle in [runner] if runner is not None else list(self._idle):
            if not self.is_idle(idle):
                continue
            if self._limiter is None or self._limiter.acquire(idle):
                return idle
        return None

    def unclaim(self, runner: InstanceRunner) -> None:
        """Free what `claim` has taken from the rate limiter, because the runner gets no batch."""
        if self._limiter is not None:
            self._limiter.release(runner)

    def run(self, waiting: list[QueuedRequest], runner: InstanceRunner) -> None:
        """Execute a batch on a claimed runner."""
        if self._idle and self._idle[0] is runner:
            del self._idle[0]
        elif runner in self._idle:
            self._idle.remove(runner)
        else:
            self._aside.remove(runner)
        runner.run(new_delivery(waiting, self._context, runner.outstanding))

    async def try_out(self, waiting: list[QueuedRequest], runner: InstanceRunner) -> None:
        """Execute a batch on a runner that does not serve yet, and return when it is idle again.

        The rate limit does not apply.
        """
        idle = self._trials[runner] = self._context.loop.create_future()
        runner.run(new_delivery(waiting, self._context, runner.outstanding))
        await idle

    async def open(self, model: Model, specs: list[InstanceSpec]) -> list[InstanceRunner]:
        """Open instances, without putting them into service. If one fails, close the others.

        Raise the exception of the first that failed; CoreError(INVALID) if an instance demands more resources
        than the rate limiter has.
        """
        runners = [self._new_runner(model, spec) for spec in specs]
        results = await asyncio.gather(*(w.open() for w in runners), return_exceptions=True)
        opened = [w for w, r in zip(runners, results, strict=True) if r is None]
        if failure := next((r for r in results if r is not None), None):
            await self.discard(opened)
            raise failure
        for runner in opened:
            runner.on_device = runner.instance.memory == "device"
        if self._limiter is not None:
            try:
                for runner in opened:
                    if not runner.spec.passive:
                        self._limiter.register(
                            runner, runner.spec.demand, lambda: self._on_idle(), self.is_idle
                        )
            except CoreError:
                await self.discard(opened)
                raise
        return opened

    def _new_runner(self, model: Model, spec: InstanceSpec) -> InstanceRunner:
        instance = spec.instance(model)
        instance.changed = self._changed
        runner = runner_for(instance, self._context.loop, self, self._limiter is not None)
        runner.spec = spec
        return runner

    async def discard(self, runners: list[InstanceRunner]) -> None:
        """Close instances that were opened and not admitted."""
        for runner in runners:
            self._unregister(runner)
        await asyncio.gather(*(runner.close() for runner in runners))

    def admit(self, runners: list[InstanceRunner]) -> None:
        """Put opened instances into service; passive ones only wait."""
        for runner in runners:
            if runner.spec.passive:
                self.passive.append(runner)
                continue
            self.runners.append(runner)
            if runner.broken is None:
                self._idle.append(runner)
        self._find_broken()
        self._changed()

    def retire(self, runner: InstanceRunner) -> None:
        """Give an instance no new batch, and close it when its batches have ended."""
        if runner in self.passive:
            self.passive.remove(runner)
        else:
            self.runners.remove(runner)
        if self.is_idle(runner):
            (self._idle if runner in self._idle else self._aside).remove(runner)
            self._unregister(runner)  # otherwise the limiter may grant resources to it
        self._find_broken()
        self._unready = not all(w.instance.ready() for w in self.runners)
        back = self._set_unready_aside()
        if back or self.broken is not None or self._limiter is not None:
            # Later, because this may be called while the scheduler starts batches.
            self._context.loop.call_soon(self._on_idle)
        self._retiring[runner] = self._context.loop.create_task(self._close_when_empty(runner))

    async def _close_when_empty(self, runner: InstanceRunner) -> None:
        if runner.outstanding.count:
            answered = self._context.loop.create_future()
            runner.outstanding.on_empty = FutureSetter(answered)
            await answered
        self._unregister(runner)
        await runner.close()
        self._retiring.pop(runner, None)

    def _find_broken(self) -> None:
        reasons = [runner.broken for runner in self.runners]
        if None in reasons:
            self.broken = None
        else:
            self.broken = next(iter(reasons), None) or unavailable("all are passive")

    def _unregister(self, runner: InstanceRunner) -> None:
        if self._limiter is not None:
            self._limiter.unregister(runner)

    async def close(self) -> None:
        """Close the instances, each where it ran. A second call does nothing."""
        runners = self.runners + self.passive
        self.runners, self.passive = [], []
        self._idle.clear()
        self._aside.clear()
        for runner in [*runners, *self._retiring]:
            self._unregister(runner)
            if runner.outstanding.on_empty is not None:  # its batches will not end any more
                runner.outstanding.on_empty()
        await asyncio.gather(*(w.close() for w in runners), *self._retiring.values())

    def became_idle(self, runner: InstanceRunner, delivery: BatchDelivery) -> None:
        """Take back a runner after a batch: end its `try_out`, or make it idle, or remove it if it broke."""
        if self._trials:
            trial = self._trials.pop(runner, None)
            if trial is not None:
                if not trial.done():
                    trial.set_result(None)
                return
        if runner.broken is not None:
            self._remove_broken(runner)
        elif runner in self.runners:
            self._idle.append(runner)
            if self._unready:
                self._set_unready_aside()
        if self._limiter is not None:
            self._limiter.executed(runner)
        self._on_idle()
        if self._limiter is not None:
            self._limiter.grant()

    def _remove_broken(self, runner: InstanceRunner) -> None:
        """Give a broken runner no more batches; it stays in `runners`.

        It may be idle: another of its batches may have ended before.
        """
        self._idle = [each for each in self._idle if each is not runner]
        self._aside = [each for each in self._aside if each is not runner]
        if self._unready:
            self._set_unready_aside()  # maybe no ready instance is left
        if all(other.broken is not None for other in self.runners):
            self.broken = runner.broken

    def _changed(self) -> None:
        """Ask all instances whether they are ready. Call `on_idle` if one is available again."""
        self._unready = not all(w.instance.ready() for w in self.runners)
        if self._set_unready_aside():
            self._on_idle()

    def _set_unready_aside(self) -> bool:
        """Set idle instances that are not ready aside while another one is ready.

        Return whether an instance is available again.
        """
        apart = self._unready and self.ready
        back = [w for w in self._aside if not apart or w.instance.ready()]
        away = [w for w in self._idle if apart and not w.instance.ready()]
        self._aside = [w for w in self._aside if w not in back] + away
        self._idle = [w for w in self._idle if w not in away] + back
        return bool(back)


def runner_for(
    instance: ModelInstance,
    loop: asyncio.AbstractEventLoop,
    owner: RunnerOwner,
    limited: bool = False,
) -> InstanceRunner:
    """Return the runner that suits the instance's `placement`, `execute` (coroutine or not) and host policy.

    limited   whether a rate limiter counts its executions
    """
    if instance.placement == "callback":
        return CallbackRunner(instance, loop, owner, limited)
    if inspect.iscoroutinefunction(instance.execute):
        instance.host_policy.tell_loop(instance.name)
        return LoopRunner(instance, loop, owner)
    if instance.host_policy.cores:
        return ThreadRunner(instance, loop, owner)
    if instance.placement == "inline":
        return InlineRunner(instance, loop, owner)
    if instance.placement == "auto":
        return AutoRunner(instance, loop, owner)
    return ThreadRunner(instance, loop, owner)


def _ignore() -> None:
    """Stand in for `on_idle` until `connect`."""
