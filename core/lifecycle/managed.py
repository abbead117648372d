"""ManagedModel: all versions of one name, and the swaps between them.

Roster ─► [ManagedModel] ─► ModelVersion.  New versions load beside those that serve. Only when every
one of them could do they take over, all in one step of the loop; then the old ones drain. So a request
always meets a version that is whole, and a failed reload changes nothing.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager

from core.backend import implements
from core.errors import CoreError, internal, invalid
from core.lifecycle import policy
from core.lifecycle.adjustment import Adjustment, adjustment_of
from core.lifecycle.host import Host
from core.lifecycle.progress import seconds
from core.lifecycle.treatment import treated
from core.lifecycle.version import UNLOADED, ModelVersion
from core.repository import ModelDirectory, ModelSource

logger = logging.getLogger("core")

_SHOWN = 3  # versions that a text about a load names


class ManagedModel:
    """One name. Loop thread; `apply` and `unload` only by the one who holds `turn`.

    name       what the model is known by: with namespaces a Key
    versions   number → the version that the index shows
    newest     the READY version with the highest number, or None
    source     what the versions that serve were loaded from, None when none does
    seen       the same before repository agents: what the next look is compared with
    attempt    what was tried last: a source, or why there was none
    error      why the model has no version at all, "" if it has
    wanted     asked for, by name or through an ensemble, and not unloaded since
    by_name    asked for by its own name
    users      operations that hold `turn` or wait for it
    results    ("loads" or "unloads", "success" or "failure") → versions for which that was the end
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
        self._begun: float | None = None  # when the load began that goes on
        self._waits_for: Collection[str] = ()

    @property
    def steps(self) -> tuple[str, ...]:
        """Names of the models that it should be composed of; empty but for ensembles."""
        return self.attempt.steps if isinstance(self.attempt, ModelSource) else ()

    @property
    def needs(self) -> set[str]:
        """Names of the models that its versions call, also of those that only drain."""
        return {step for version in self.alive() for step in version.source.steps}

    @property
    def counts(self) -> bool:
        """Whether it is one of those that its name may mean, with namespaces."""
        return (self.wanted and isinstance(self.attempt, ModelSource)) or bool(self.alive())

    @property
    def leaving(self) -> list[asyncio.Task[None]]:
        """The unloads that are still going on, those of replaced versions too."""
        return list(self._leaving.values())

    def alive(self) -> list[ModelVersion]:
        """Every version that has something loaded; also those that the index no longer shows."""
        shown = [each for each in self.versions.values() if each.state == "READY"]
        return [*shown, *self._leaving]

    @contextmanager
    def loading(self, steps: Collection[str]) -> Iterator[None]:
        """From the wish for a load to its end: `progress` tells how far it is.

        steps   the models that are loaded before it
        """
        self._begun, self._waits_for = time.monotonic(), steps
        try:
            yield
        finally:
            self._begun = None

    def progress(self) -> str:
        """How far the load is that goes on, for a person; "" while there is none."""
        if self._begun is None:
            return ""
        text = f"model '{self.name}' is loading for {seconds(self._begun)}"
        versions = [each for _, each in sorted(self.versions.items()) if each.state == "LOADING"]
        if not versions:
            waits = ", ".join(f"'{step}'" for step in self._waits_for)
            return f"{text}: " + (f"it waits for {waits}" if waits else "its files are looked at")
        left = [f"version {v.version} {v.progress.step}" for v in versions if not v.progress.loaded]
        done = len(versions) - len(left)
        steps = ", ".join(left[:_SHOWN]) or "it waits to be served"
        return f"{text}, {done} of {len(versions)} versions loaded: {steps}"

    def refuse(self, error: CoreError) -> None:
        """The repository has nothing to load. What serves goes on."""
        told = isinstance(self.attempt, CoreError) and self.attempt.message == error.message
        if not told:  # polling finds the same again and again
            logger.error("failed to poll model '%s': %s", self.name, error.message)
            self._count("loads", False)
        self.attempt = error
        self.error = error.message

    async def apply(self, source: ModelSource) -> None:
        """Load, swap and unload until the versions are those that `source` wants.

        Raises CoreError(INVALID) with Triton's text when a version cannot load; what served serves on.
        """
        self.attempt, self.error = source, ""
        source.directory.hold()
        try:
            if not source.agents:
                await self._apply(source)
            elif not self._is_current(source):
                await self._treat(source)
            self.seen = source
        finally:
            await self._host.let_go(source.directory)

    def _is_current(self, source: ModelSource) -> bool:
        """Whether there is nothing that agents would have to look at once more."""
        return (
            self.source is not None
            and self.seen is not None
            and policy.unchanged(self.seen, source)
        )

    async def _treat(self, source: ModelSource) -> None:
        """Apply what repository agents make of a source."""
        async with treated(source, self._host) as (found, refusal):
            if found is not None:
                await self._apply(found)
                return
            self.error = refusal
            self._count("loads", False)
            logger.error("failed to load '%s': %s", self.name, refusal)
            # An agent, or a network, may refuse one worker what the others have.
            await self._host.agree(str(self.name), refusal)
            raise internal(
                f"failed to load '{self.name}', failed to poll from model repository: {refusal}\n"
            )

    async def _apply(self, source: ModelSource) -> None:
        wanted = policy.wanted_versions(source.config, source.versions)
        if not wanted:
            self.error = (
                "at least one version must be available under the version policy of model "
                f"'{self.name}'"
            )
            self._count("loads", False)
            logger.error("failed to load '%s': %s", self.name, self.error)
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
        """The versions that need no other load, only other instances."""
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
        """Load versions and open instances, all or none; with several workers, in all or in none."""
        for version in new:
            if not self._serves(version.version):
                self.versions[version.version] = version
        prepared = asyncio.gather(*(each.prepare(self._host) for each in adjusted))
        loaded = await asyncio.gather(*(version.load(self._host) for version in new))
        await prepared
        for could in loaded:
            self._count("loads", could)
        good = [version for version, could in zip(new, loaded, strict=True) if could]
        for _ in good:
            source.directory.hold()
        reasons = "".join(
            f"version {version.version} is at UNAVAILABLE state: {version.reason};"
            for version in new
            if version not in good
        )
        reasons += "".join(
            f"version {each.version.version} is at READY state: {each.reason};"
            for each in adjusted
            if each.reason
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
            version.serve()
        self._retire(old)
        for number, shown in list(self.versions.items()):
            if shown.state == "UNAVAILABLE" and shown.reason != UNLOADED:
                del self.versions[number]  # it failed once, and is no longer wanted
        if new or adjusted:
            logger.info("successfully loaded '%s'", self.name)

    def unload(self) -> list[asyncio.Task[None]]:
        """Take every version out of service at once; gives the tasks that finish and unload them.

        A version that had failed counts as unloaded too: nobody asks for it any more.
        """
        self.source, self.seen, self.error = None, None, ""
        self._retire(each for each in list(self.versions.values()) if each.state == "READY")
        for version in self.versions.values():
            if version.state == "UNAVAILABLE":
                version.reason = UNLOADED
        return self.leaving

    def dismiss(self) -> None:
        """Unload, and forget that anybody wanted the model."""
        self.unload()
        self.wanted = self.by_name = False
        self.attempt = None

    def _retire(self, versions: Iterable[ModelVersion]) -> None:
        """Start to drain and unload. From here on no new request finds them."""
        for version in versions:
            version.become("UNLOADING")
            self._leaving[version] = self._host.loop.create_task(self._leave(version))
        ready = [each for each in self.versions.values() if each.state == "READY"]
        self.newest = max(ready, key=lambda each: each.version, default=None)
        self._host.endpoints.put(
            str(self.name), {each.version: each.chain.handler for each in ready}
        )

    async def _leave(self, version: ModelVersion) -> None:
        directory = version.source.directory
        try:
            if implements(directory, ModelDirectory, "unload") and not self._serves_from(directory):
                await self._host.run(directory.unload)
            self._count("unloads", await version.unload())
            await self._host.let_go(directory)
        finally:
            del self._leaving[version]

    def _serves_from(self, directory: ModelDirectory) -> bool:
        return any(
            each.state == "READY" and each.source.directory is directory
            for each in self.versions.values()
        )

    def _count(self, what: str, could: bool) -> None:
        self.results[what, "success" if could else "failure"] += 1
