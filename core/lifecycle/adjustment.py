"""Adjustment: other instances for a version that serves, when nothing else of it has changed.

ManagedModel ─► [Adjustment] ─► Chain.  The version stays READY, with its statistics, its cache and the
sequences of the instances that stay. Source of the rule: the update of instance groups in Triton.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from core import config as configuration
from core import plugins
from core.config import ModelConfig
from core.lifecycle import policy
from core.lifecycle.host import Host
from core.lifecycle.load_slots import LoadSlot
from core.lifecycle.version import ModelVersion, reason_of, settled
from core.pipeline import Chain
from core.pipeline.instances.change import Change
from core.repository import ModelSource

logger = logging.getLogger("core")


class Adjustment:
    """One version on its way to other instances. `prepare`, then `take` or `drop`. Loop thread.

    reason   why the instances could not be opened, "" as long as they could
    """

    def __init__(self, version: ModelVersion, source: ModelSource, config: ModelConfig):
        self.version = version
        self.reason = ""
        self._source = source
        self._config = config
        self._change: Change | None = None

    async def prepare(self, host: Host) -> bool:
        """Open the new instances, beside those that serve. Returns whether that could be done.

        Tries again --model-load-retry-count times.
        """
        for _ in range(host.options.model_load_retry_count + 1):
            async with LoadSlot(host.loading) as slot:
                try:
                    await self._open(slot)
                except Exception as error:
                    self.reason = reason_of(error)
                    self._put_back()
                    logger.error(
                        "failed to change the instances of '%s' version %d: %s",
                        self.version.name,
                        self.version.version,
                        self.reason,
                    )
                else:
                    self.reason = ""
                    return True
        return False

    async def _open(self, slot: LoadSlot) -> None:
        version = self.version
        assert isinstance(version.chain, Chain)
        assert version.model is not None
        version.model.config = self._config  # new instances read it
        version.model.waits = slot.lent  # they may load other models
        self._change = await version.chain.prepare(version.model)

    def take(self) -> None:
        """The new instances serve, together with those that stay; the others finish and close."""
        version, change = self.version, self._change
        assert change is not None
        version.config = self._config
        # Whoever holds a directory lets go of that one; this one is the same folder.
        version.source = replace(self._source, directory=version.source.directory)
        change.commit()
        logger.info(
            "instances of '%s' version %d: %d new, %d stay, %d leave",
            version.name,
            version.version,
            len(change.opened),
            len(change.kept),
            len(change.leaving),
        )

    async def drop(self) -> None:
        """Close what was opened; the version goes on as it was."""
        self._put_back()
        if self._change is not None:
            await self._change.abandon()

    def _put_back(self) -> None:
        if self.version.model is not None:
            self.version.model.config = self.version.config


async def adjustment_of(
    version: ModelVersion, source: ModelSource, host: Host
) -> Adjustment | None:
    """How a READY version becomes what a source with the same files says, without another load.

    None if it cannot: more than the instance groups would change, or nothing, or there is no telling.
    """
    if version.model is None:  # an ensemble
        return None
    seen = replace(source, directory=version.source.directory)
    proposal = ModelVersion(seen, version.version)
    try:
        configuration.validate_source(seen.config, plugins.formats())
        config, _ = await host.run(settled, proposal, version.model.backend, host)
    except Exception:  # the load that follows says what is wrong
        return None
    if not policy.only_groups_differ(version.config, config):
        return None
    return Adjustment(version, source, config)
