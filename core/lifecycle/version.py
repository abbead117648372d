"""ModelVersion: one version of one model, from its files to the chain that serves it.

ManagedModel ─► [ModelVersion] ─► backend, pipeline.  Load opens the backend, configuration, Model and
chain in this order. Unload closes them in reverse order, also if a step raises.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from core import config as configuration
from core import plugins
from core.backend import Backend, MemoryUsage, Model, ModelInstance, implements
from core.config import ModelConfig, Signature
from core.errors import AtRest, AuthorError, CoreError, call_author, reason_of
from core.lifecycle import policy
from core.lifecycle.ensemble import open_ensemble
from core.lifecycle.host import Host
from core.lifecycle.load_slots import LoadSlot
from core.lifecycle.parameters import wants_process
from core.lifecycle.policy import State
from core.lifecycle.progress import (
    COMPLETES,
    FETCHES,
    LOADED,
    LOADS,
    OPENS_BACKEND,
    OPENS_INSTANCES,
    WAITS,
    Progress,
)
from core.lifecycle.settling import settled
from core.pipeline import Chain, ChainServices, open_chain
from core.pipeline.ensemble import EnsembleChain
from core.repository import ModelDirectory, ModelSource, stamp_of
from core.telemetry.statistics import Statistics

logger = logging.getLogger("core")

UNLOADED = "unloaded"


class ModelVersion:
    """One version of a model. Written on the loop thread.

    name, version   of the model
    namespace       of the model; None without namespaces
    key             identifies the model: `<namespace>::<name>`, or the name without namespaces
    source          files and configuration that it is loaded from
    state, reason   "LOADING", "READY", "UNLOADING" or "UNAVAILABLE", and why not READY
    config          completed, normalised and validated; set from READY on
    plain           the same without what a plugin lays over it (see Host.overlay)
    signature       inputs and outputs; set from READY on
    chain           the pipeline to its instances; set from READY until it is unloaded
    load_seconds    duration of the load
    progress        progress of the load
    model           shared by its instances; None for ensembles, and while nothing is loaded
    measured        what a plugin has measured of its memory, for a backend that reports nothing
    """

    config: ModelConfig
    plain: ModelConfig
    signature: Signature
    chain: Chain | EnsembleChain

    def __init__(self, source: ModelSource, version: int):
        self.name = source.name
        self.namespace = source.namespace
        self.key = str(source.key)
        self.version = version
        self.source = source
        self.state: State = "LOADING"
        self.reason = ""
        self.load_seconds: float = 0.0
        self.progress = Progress()
        self.model: Model | None = None
        self.measured: Sequence[MemoryUsage] = ()
        self._undo = AsyncExitStack()  # releases the resources of load, after the chain has drained

    def __repr__(self) -> str:
        return f"ModelVersion({self.name!r} {self.version}, {self.state})"

    @property
    def directory(self) -> Path:
        """The model's folder."""
        return self.source.directory.path

    @property
    def path(self) -> Path:
        """The version's folder."""
        return self.source.path(self.version)

    @property
    def content(self) -> str:
        """Digest of files, configuration and steps; identifies the content of the version. While READY."""
        return self.chain.content

    @property
    def statistics(self) -> Statistics:
        """Return the counters since the version was loaded; available as long as its chain."""
        return self.chain.statistics

    def memory_usage(self) -> list[dict[str, Any]]:
        """Return its memory usage as entries of `model_stats`: reported by its backend, else measured."""
        if self.model is None:
            return []
        assert isinstance(self.chain, Chain)
        found: Counter[tuple[str, int]] = Counter()
        tellers: list[Model | ModelInstance] = [self.model, *self.chain.opened]
        for each in tellers:
            try:
                for used in each.memory_usage():
                    found[used.type, used.id] += used.byte_size
            except Exception:  # the other statistics remain valid
                logger.exception("model '%s' cannot tell what memory it uses", self.key)
        for used in () if found else self.measured:
            found[used.type, used.id] += used.byte_size
        return [
            {"type": kind, "id": number, "byte_size": size}
            for (kind, number), size in sorted(found.items())
        ]

    @property
    def failed(self) -> bool:
        """Return whether its load has failed: it is UNAVAILABLE without an unload."""
        return self.state == "UNAVAILABLE" and not self.reason.startswith(UNLOADED)

    @property
    def at_rest(self) -> bool:
        """Return whether it is unloaded, or about to be, until something needs it."""
        return self.reason.startswith(f"{UNLOADED}: ") and not self.failed

    @property
    def wanted(self) -> bool:
        """Return whether it is READY or LOADING, or has failed."""
        return self.state in ("READY", "LOADING") or self.failed

    @property
    def in_flight(self) -> int:
        """Number of accepted requests without their last response."""
        return self.chain.in_flight if self.state in ("READY", "UNLOADING") else 0

    async def load(self, host: Host) -> bool:
        """Load the version without serving it; ManagedModel makes it READY.

        Retries --model-load-retry-count times. Returns whether it succeeded. If not, the version is
        UNAVAILABLE with the reason, and all its resources are released. At rest counts as a success.
        """
        what = f"{self.key}:{self.version}"
        for attempt in range(host.options.model_load_retry_count + 1):
            self.progress.step = WAITS
            async with LoadSlot(host.loading) as slot:
                logger.info("loading: %s", what)
                self.become("LOADING")
                start = time.monotonic()
                try:
                    with self.progress.logged(what, host.loop):
                        await self._open(host, slot)
                except AtRest as rest:
                    self.become("UNAVAILABLE", f"{UNLOADED}: {rest}")
                    return True
                except Exception as error:
                    self._fail(error, f" (attempt {attempt + 1})" if attempt else "")
                else:
                    self.load_seconds = time.monotonic() - start
                    self.progress.step = LOADED
                    return True
        return False

    def become(self, state: State, reason: str = "") -> None:
        """Change state and reason, and call the hook core_model_changed."""
        self.state, self.reason = state, reason
        event = state.lower()
        if state == "UNAVAILABLE":
            event = "failed" if self.failed else "gone"
        shown = reason if event == "failed" else ""
        plugins.tell("core_model_changed", model=self, state=event, reason=shown)

    def configure(self, config: ModelConfig) -> None:
        """Serve by another configuration from now on. Only while READY; see Chain.configure."""
        self.chain.configure(self.config, config)
        if self.model is not None and self.model.config is self.config:  # else instances open by it
            self.model.config = config
        self.config = config

    async def unload(self) -> bool:
        """Refuse new requests, finish accepted ones, close the instances, unload the model.

        Returns whether all of that succeeded; failures are logged.
        """
        logger.info("unloading: %s:%d", self.key, self.version)
        await self.chain.drain()
        could = True
        try:
            await self._undo.aclose()
        except Exception:
            could = False
            logger.exception("unloading model '%s' version %d failed", self.key, self.version)
        del self.chain  # nothing may hold on to the model's memory
        self.model = None
        self.become("UNAVAILABLE", self.reason or UNLOADED)
        logger.info("successfully unloaded '%s' version %d", self.key, self.version)
        return could

    async def _open(self, host: Host, slot: LoadSlot) -> None:
        configuration.validate_source(self.source.config, plugins.formats())
        if implements(self.source.directory, ModelDirectory, "fetch"):
            self.progress.step = FETCHES
            await host.run(self.source.directory.fetch, [self.version])
        async with AsyncExitStack() as undo:
            if self.source.config.HasField("ensemble_scheduling"):
                self.progress.step = COMPLETES
                await self._settle(None, host)
                chain = await open_ensemble(self.config, self.signature, host, self._digest())
                self.signature = chain.signature
                self.plain.model_transaction_policy.CopyFrom(self.config.model_transaction_policy)
                undo.push_async_callback(chain.close)
                async with self._surrounded(host, slot):
                    self.chain = chain
            else:
                isolated = wants_process(self.source.config)
                self.progress.step = OPENS_BACKEND
                backend = await host.backends.acquire(self.source.config.backend, isolated)
                undo.push_async_callback(host.backends.release, backend)
                self.progress.step = COMPLETES
                await self._settle(backend, host)
                model = self._made(backend, host)
                model.waits = slot.lent
                async with self._surrounded(host, slot):
                    self.progress.step = LOADS
                    # Taken before the files are read: a change during the load makes the next stamp differ.
                    file = plugins.file_of(backend)
                    beside = await host.run(stamp_of, file.parent) if file else ""
                    if implements(model, Model, "load"):
                        await host.run(call_author, backend.name, "load", model.load)
                    if implements(model, Model, "unload"):
                        undo.push_async_callback(host.run, model.unload)
                    self.progress.step = OPENS_INSTANCES
                    self.chain = await open_chain(
                        model,
                        self.signature,
                        ChainServices(
                            host.loop,
                            cache=host.cache,
                            limiter=host.limiter,
                            policies=host.policies,
                            early=host.options.early_refusal,
                        ),
                        content=self._digest(beside),
                        statistics=host.statistics_of(self.config),
                    )
                    undo.push_async_callback(self.chain.close)
                    self.model = model
            self._undo = undo.pop_all()

    @asynccontextmanager
    async def _surrounded(self, host: Host, slot: LoadSlot) -> AsyncIterator[None]:
        """Enter what plugins put around the load; while they wait, other versions may use the slot."""
        async with AsyncExitStack() as entered:
            for _, each in plugins.ask_each("core_around_load", version=self, server=host.models):
                async with slot.lent():
                    await entered.enter_async_context(each)
            yield

    def _digest(self, beside: str = "") -> str:
        """Return a digest of the files and the configuration of this version.

        beside   the stamp of its backend's folder, "" for a package
        The instance groups are left out: they do not affect responses.
        """
        digest = hashlib.blake2b(digest_size=16)
        digest.update(
            f"{self.source.versions.get(self.version)}\n{self.source.shared}\n{beside}\n".encode()
        )
        if self.namespace is not None:
            digest.update(f"{self.key}\n".encode())
        config = policy.without(self.plain, "instance_group")
        digest.update(config.SerializeToString(deterministic=True))
        return digest.hexdigest()

    async def _settle(self, backend: Backend | None, host: Host) -> None:
        found = await host.run(settled, self.source, self.version, backend, host)
        self.config, self.plain, self.signature = found

    def _made(self, backend: Backend, host: Host) -> Model:
        model = backend.model()
        model.name, model.version, model.config = self.name, self.version, self.config
        model.path, model.directory = self.path, self.directory
        model.backend, model.server = backend, host.models
        return model

    def _fail(self, error: Exception, attempt: str) -> None:
        self.model = None
        vars(self).pop("chain", None)  # nothing may hold on to the model's memory
        self.become("UNAVAILABLE", reason_of(error))
        cause: BaseException | None = error
        hint = ""
        if isinstance(error, AuthorError):
            cause = error.__cause__
            hint = f"; `core config {self.directory}` loads it without a server"
        logger.error(
            "failed to load '%s' version %d%s: %s",
            *(self.key, self.version, attempt, self.reason + hint),
            # An exception of a model's own code needs its traceback.
            exc_info=None if isinstance(cause, CoreError) else cause,
        )
