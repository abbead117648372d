"""ManagedModel: all versions of one model, and the swaps between them.

ModelRegistry ─► [ManagedModel] ─► ModelVersion.  New versions load beside those that serve. They
take over only after all of them have loaded, in one step of the loop; then the old ones drain. So a request
always reaches a complete version, and a failed reload changes nothing.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import partial

from core.backend import implements
from core.errors import CoreError, internal, invalid
from core.lifecycle import policy
from core.lifecycle.adjustment import Adjustment, adjustment_of
from core.lifecycle.host import Host
from core.lifecycle.progress import LOADED, seconds
from core.lifecycle.version import UNLOADED, ModelVersion
from core.repository import ModelDirectory, ModelSource
from core.repository.agents import Treated
from core.repository.agents.known import find_agent

logger = logging.getLogger("core")

_SHOWN = 3  # limit of versions that a progress text names


class ManagedModel:
    """One managed model. Loop thread; only the holder of `turn` may call `apply` and `unload`.

    name       the model's key: its name, or with namespaces a Key
    versions   number → the version that the index shows
    newest     the READY version with the highest number, or None
    source     source of the serving versions; None if none serves
    seen       that source as it was before repository agents; the next look is compared with it
    attempt    what the last load was made from: a source, or an error instead; None without a load
    error      why the last load failed before any version was loaded; "" if it did not
    wanted     whether it was requested, by name or through an ensemble, and not unloaded since
    by_name    whether it was requested by its own name
    users      operations that hold `turn` or wait for it
    results    ("loads" or "unloads", "success" or "failure") → versions; 1 for a failure before any version
    """

    def __init__(self, name: str, host: Host):
        self.name = name
        self.versions: dict[int, ModelVersion] = {}
        self.newest: ModelVersion | None = None
        self.source: ModelSource | None = None
        self.seen: ModelSource | None = None
        self.attempt: ModelSource | CoreError | None = None
        self.error = ""
        self.wanted = False
        self.by_name = False
        self.turn = asyncio.Lock()
        self.users = 0
        self.results = {
            (what, result): 0 for what in ("loads", "unloads") for result in ("success", "failure")
        }
        self._host = host
        self._leaving: dict[ModelVersion, asyncio.Task[None]] = {}
        self._begun: float | None = None  # start time of the current load
        self._waits_for: Collection[str] = ()

    @property
    def steps(self) -> tuple[str, ...]:
        """Names of the models in the steps of the last load; empty unless that was an ensemble."""
        return self.attempt.steps if isinstance(self.attempt, ModelSource) else ()

    @property
    def needs(self) -> set[str]:
        """Return the names of the models that its versions call, draining versions included."""
        return {step for version in self.alive() for step in version.source.steps}

    @property
    def at_rest(self) -> bool:
        """Return whether a version is unloaded until something needs it."""
        return any(version.at_rest for version in self.versions.values())

    @property
    def counts(self) -> bool:
        """Return whether a name without namespace may mean this model.

        It may if the model is wanted and its last load had a source, or if a version is READY or leaves.
        """
        return (self.wanted and isinstance(self.attempt, ModelSource)) or bool(self.alive())

    @property
    def leaving(self) -> list[asyncio.Task[None]]:
        """The tasks that now drain and unload versions, those of replaced versions included."""
        return list(self._leaving.values())

    def alive(self) -> list[ModelVersion]:
        """Return the versions that are READY or drain, also those that the index no longer shows."""
        return [*self._ready(), *self._leaving]

    def _ready(self) -> list[ModelVersion]:
        return [each for each in self.versions.values() if each.state == "READY"]

    @contextmanager
    def loading(self, steps: Collection[str]) -> Iterator[None]:
        """Let `progress` report a load for as long as the block lasts.

        steps   the models that are loaded before it
        """
        self._begun, self._waits_for = time.monotonic(), steps
        try:
            yield
        finally:
            self._begun = None

    def progress(self) -> str:
        """Return the progress of the current load as text; "" without a load."""
        if self._begun is None:
            return ""
        text = f"model '{self.name}' is loading for {seconds(self._begun)}"
        versions = [each for _, each in sorted(self.versions.items()) if each.state == "LOADING"]
        if not versions:
            waits = ", ".join(f"'{step}'" for step in self._waits_for)
            return f"{text}: " + (f"it waits for {waits}" if waits else "its files are looked at")
        left = [
            f"version {v.version} {v.progress.step}" for v in versions if v.progress.step != LOADED
        ]
        done = len(versions) - len(left)
        steps = ", ".join(left[:_SHOWN]) or "it waits to be served"
        return f"{text}, {done} of {len(versions)} versions loaded: {steps}"

    def refuse(self, error: CoreError) -> None:
        """Record why the repository has nothing to load; log it if it is new. Serving versions continue."""
        known = isinstance(self.attempt, CoreError) and self.attempt.message == error.message
        if not known:  # polling finds the same error each time
            logger.error("failed to poll model '%s': %s", self.name, error.message)
            self._count("loads", False)
        self.attempt = error
        self.error = error.message

    async def apply(self, source: ModelSource) -> None:
        """Load and swap to match `source`; begin to unload the rest, which drains after the return.

        Load nothing if it has agents and is unchanged since `seen` (policy.unchanged: no override is).
        Raises CoreError if an agent or a version fails, or no version is wanted; serving versions stay.
        """
        self.attempt, self.error = source, ""
        source.directory.hold()
        try:
            if not source.agents:
                await self._apply(source)
            elif self.seen is None or not policy.unchanged(self.seen, source):
                await self._treat(source)
            self.seen = None if self.at_rest else source
        finally:
            await self._host.let_go(source.directory)

    async def _treat(self, source: ModelSource) -> None:
        """Run the agents of a source on worker threads, apply their result, and tell them how that ended.

        The resulting folder stays until every version that was loaded from it is unloaded.
        """
        find = partial(find_agent, directory=self._host.options.repoagent_directory)
        directory = Treated(source, find)
        source.directory.hold()  # released when `directory` is
        directory.hold()
        try:
            try:
                await self._apply(await self._treated(directory, source))
            except BaseException:
                await self._host.run(directory.fail)
                raise
            await self._host.run(directory.complete)
        finally:
            await self._host.let_go(directory)

    async def _treated(self, directory: Treated, source: ModelSource) -> ModelSource:
        try:
            # All versions: agents see the whole model folder, and may derive versions from others.
            await self._host.run(source.directory.fetch, list(source.versions))
            return await self._host.run(directory.treat)
        except Exception as error:
            refusal = getattr(error, "message", "") or f"{type(error).__name__}: {error}"
        self._fail(refusal)
        # An agent or a network may fail in one worker and not in the others.
        await self._host.agree(str(self.name), refusal)
        raise internal(
            f"failed to load '{self.name}', failed to poll from model repository: {refusal}\n"
        )

    async def _apply(self, source: ModelSource) -> None:
        wanted = policy.wanted_versions(source.config, source.versions)
        if not wanted:
            self._fail(
                "at least one version must be available under the version policy of model "
                f"'{self.name}'{source.hint}"
            )
            raise invalid(f"load failed for model '{self.name}': {self.error}\n")
        states = {number: each.state for number, each in self.versions.items()}
        plan = policy.plan(states, wanted, policy.stale_versions(self.source, source))
        adjusted = await self._adjustments(source, plan)
        changing = {each.version.version for each in adjusted}
        new = [ModelVersion(source, number) for number in plan.load if number not in changing]
        if new or adjusted:
            await self._load(source, new, adjusted)
        self._swap(new, adjusted, plan)
        self.source = source

    async def _adjustments(self, source: ModelSource, plan: policy.Plan) -> list[Adjustment]:
        """Return an Adjustment for each READY version of `plan` that needs other instances but no load."""
        found = [
            await adjustment_of(self.versions[number], source, self._host)
            for number in policy.same_files(self.source, source)
            if number in plan.load and self._serves(number)
        ]
        return [each for each in found if each is not None]

    def _serves(self, number: int) -> bool:
        return number in self.versions and self.versions[number].state == "READY"

    async def _load(
        self, source: ModelSource, new: list[ModelVersion], adjusted: list[Adjustment]
    ) -> None:
        """Load versions, open instances. If one fails, in any worker, undo all; raise CoreError(INVALID)."""
        for version in new:
            if not self._serves(version.version):
                self.versions[version.version] = version
        prepared = asyncio.gather(*(each.prepare(self._host) for each in adjusted))
        loaded = await asyncio.gather(*(version.load(self._host) for version in new))
        await prepared
        failed = [version for version, could in zip(new, loaded, strict=True) if not could]
        good = [version for version in new if version not in failed and not version.at_rest]
        for version in [*failed, *good]:
            self._count("loads", version in good)
        for _ in good:
            source.directory.hold()
        refused = [(version, version.reason) for version in failed]
        refused += [(each.version, each.reason) for each in adjusted if each.reason]
        reasons = "".join(
            f"version {version.version} is at {version.state} state: {reason};"
            for version, reason in refused
        )
        objection = await self._host.agree(str(self.name), reasons)
        if not objection:
            return
        self._retire(good)
        for each in adjusted:
            await each.drop()
        reasons = reasons or objection
        raise invalid(f"load failed for model '{self.name}': {reasons}\n")

    def _swap(self, new: list[ModelVersion], adjusted: list[Adjustment], plan: policy.Plan) -> None:
        for each in adjusted:
            each.take()
        old = [self.versions[number] for number in plan.unload]
        for version in new:
            shown = self.versions.get(version.version)
            if shown is not None and shown.state == "READY":
                old.append(shown)
            self.versions[version.version] = version
            if not version.at_rest:
                version.become("READY")
        self._retire(old)
        for number, shown in list(self.versions.items()):
            if shown.failed:
                del self.versions[number]  # it failed once, and is no longer wanted
        if new or adjusted:
            logger.info("successfully loaded '%s'", self.name)

    def unload(self, rest: str = "") -> list[asyncio.Task[None]]:
        """Take every version out of service at once. Return all tasks that drain and unload now.

        rest   why they are unloaded until something needs them. "": they are no longer wanted; then versions
               that failed to load, or are at rest, count as unloaded too
        """
        self.source, self.seen, self.error = None, None, ""
        self._retire(self._ready(), rest)
        for version in self.versions.values():
            if version.state == "UNLOADING":
                version.reason = rest
            elif version.state == "UNAVAILABLE" and not rest:
                version.reason = UNLOADED
        return self.leaving

    def dismiss(self) -> None:
        """Call `unload`, without waiting for its tasks, and clear `wanted`, `by_name` and `attempt`."""
        self.unload()
        self.wanted = self.by_name = False
        self.attempt = None

    def _retire(self, versions: Iterable[ModelVersion], rest: str = "") -> None:
        """Start to drain and unload versions. From now on requests reach only the versions that are READY."""
        for version in versions:
            version.become("UNLOADING", rest)
            self._leaving[version] = self._host.loop.create_task(self._leave(version))
        ready = {each.version: each for each in self._ready()}
        self.newest = ready[max(ready)] if ready else None
        handlers = {number: each.chain.handler for number, each in ready.items()}
        self._host.endpoints.put(str(self.name), handlers)

    async def _leave(self, version: ModelVersion) -> None:
        directory = version.source.directory
        try:
            if implements(directory, ModelDirectory, "unload") and not any(
                each.source.directory is directory for each in self._ready()
            ):
                await self._host.run(directory.unload)
            self._count("unloads", await version.unload())
            await self._host.let_go(directory)
        finally:
            del self._leaving[version]

    def _fail(self, reason: str) -> None:
        self.error = reason
        self._count("loads", False)
        logger.error("failed to load '%s': %s", self.name, reason)

    def _count(self, what: str, could: bool) -> None:
        self.results[what, "success" if could else "failure"] += 1
