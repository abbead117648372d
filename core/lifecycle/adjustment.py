"""Adjustment: changes the instances of a serving version when nothing else of it has changed.

ManagedModel ─► [Adjustment] ─► Chain.  The version stays READY, with its statistics, its cache and the
sequences of the instances that stay. Triton updates instance groups by the same rule.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from core import config as configuration
from core import plugins
from core.config import ModelConfig
from core.errors import reason_of
from core.lifecycle import policy
from core.lifecycle.host import Host, Refresh
from core.lifecycle.load_slots import LoadSlot
from core.lifecycle.settling import settled
from core.lifecycle.version import ModelVersion
from core.pipeline import Chain
from core.pipeline.instances.change import Change
from core.repository import ModelSource

logger = logging.getLogger("core")


class Adjustment:
    """A change of one version's instances: `prepare`, then `take` or `drop`. Loop thread.

    reason   why the last try to open the instances failed; "" if it did not
    """

    def __init__(
        self, version: ModelVersion, source: ModelSource, config: ModelConfig, plain: ModelConfig
    ):
        self.version = version
        self.reason = ""
        self._source = source
        self._config = config
        self._plain = plain
        self._refresh: Refresh
        self._change: Change | None = None

    async def prepare(self, host: Host) -> bool:
        """Open the new instances beside those that serve. Return whether that succeeded.

        Tries again after a failure, at most --model-load-retry-count times. A failure is logged.
        """
        self._refresh = host.refresh
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
        """Put the new instances into service. Of the old ones, some stay; the others finish and close."""
        version, change = self.version, self._change
        assert change is not None
        version.config, version.plain = self._config, self._plain
        # Holders release the directory object that they hold; this one names the same folder.
        version.source = replace(self._source, directory=version.source.directory)
        change.commit()
        version.configure(self._config)  # an overlay may change more than the instances
        self._refresh(version)  # what has changed since `prepare`
        logger.info(
            "instances of '%s' version %d: %d new, %d stay, %d leave",
            version.name,
            version.version,
            len(change.opened),
            len(change.kept),
            len(change.leaving),
        )

    async def drop(self) -> None:
        """Close the new instances, if they are open. The version continues unchanged."""
        self._put_back()
        if self._change is not None:
            await self._change.abandon()

    def _put_back(self) -> None:
        if self.version.model is not None:
            self.version.model.config = self.version.config


async def adjustment_of(
    version: ModelVersion, source: ModelSource, host: Host
) -> Adjustment | None:
    """Return the change that gives a READY version the instances of `source`, which has the same files.

    Return None for an ensemble, if not exactly the instance groups differ, or if the new configuration fails.
    """
    if version.model is None:  # an ensemble
        return None
    seen = replace(source, directory=version.source.directory)
    try:
        configuration.validate_source(seen.config, plugins.formats())
        found = await host.run(settled, seen, version.version, version.model.backend, host)
    except Exception:  # the load that follows reports the error
        return None
    config, plain, _ = found
    if not policy.only_groups_differ(version.plain, plain):
        return None
    return Adjustment(version, source, config, plain)
