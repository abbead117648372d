"""Health and numbers of the server: ready, statistics, metrics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from core.control import merging
from core.control.exchange import ProcessResults
from core.control.models import Models
from core.control.operation import Area, Arguments, here, question
from core.errors import Kind, invalid, unavailable
from core.lifecycle import ModelManager
from core.lifecycle.model_index import named_entry
from core.options import Options
from core.request import NEWEST
from core.telemetry.families import Family, Sample
from core.telemetry.metrics.catalog import family

_IS_ABSENT = (Kind.INVALID, Kind.UNAVAILABLE)  # of statistics: not loaded, or not yet


def _all_true(answers: ProcessResults, arguments: Arguments) -> bool:
    """Return whether every process answered True. Raises the error of this process, if it has one.

    False if one is silent, raised an error, or has never been up. A dead process is not asked.
    """
    if (error := answers.errors.get(answers.own)) is not None:
        raise error
    return (
        answers.complete
        and not answers.silent
        and not answers.errors
        and all(answers.values.values())
    )


def _statistics(answers: ProcessResults, arguments: Arguments) -> list[dict[str, Any]]:
    if answers.values and all(each.kind in _IS_ABSENT for each in answers.errors.values()):
        # While a model comes or goes, some have it and some do not.
        answers.errors.clear()
    return merging.statistics(answers.all())


def _metrics(answers: ProcessResults, arguments: Arguments) -> list[Family]:
    found = merging.families(map(merging.families_of_values, answers.all()))
    return [*found, *families_of_workers(answers)]


def families_of_workers(answers: ProcessResults) -> list[Family]:
    """Return two families: how many processes have answered, and how often each was started again."""
    restarts = [Sample({"worker": str(each)}, count) for each, count in answers.restarts.items()]
    return [
        family("core_workers", [Sample({}, len(answers.values))]),
        family("core_worker_restarts", restarts),
    ]


class HealthControl(Area, name="health"):
    """Whether the server serves, and what it has counted.

    models    those of this process
    exiting   whether this process is shutting down
    collect   returns every metric family of this process
    """

    def __init__(
        self,
        options: Options,
        manager: ModelManager,
        models: Models,
        collect: Callable[[], list[Family]],
    ):
        self.loaded = False  # whether the models of the start are
        self.exiting = False
        self._strict = options.strict_readiness
        self._manager = manager
        self._models = models
        self._collect = collect

    @here("health")
    def live(self) -> bool:
        """Return whether the server can answer at all. Raises CoreError(UNAVAILABLE) while it exits."""
        if self.exiting:
            raise unavailable("Server exiting")
        return True

    @here("health", internal=True)
    def ready_here(self) -> bool:
        """Return whether this process can serve requests; with strict readiness, for every model.

        Raises CoreError(UNAVAILABLE) while the server exits.
        """
        if not self.live() or not self.loaded:
            return False
        return not self._strict or self._manager.all_ready()

    @question("health", _all_true)
    async def ready(self) -> bool:
        """Return whether requests can be served; with strict readiness, all instances are asked first.

        Raises CoreError(UNAVAILABLE) while the server exits.
        """
        if not self.ready_here():
            return False
        return not self._strict or await self._manager.check_all()

    @question("health", _all_true)
    async def model_ready(self, name: str, version: int = NEWEST) -> bool:
        """Return whether that version, or the newest, can serve, after its instances have been asked.

        Raises CoreError for an unknown model or version, and for one that does not serve: see Models.
        """
        return await self._models.check(name, version)

    @question("statistics", _statistics)
    async def statistics(self, name: str = "", version: int = NEWEST) -> list[dict[str, Any]]:
        """Return an entry for each ready version, of one model or of all.

        Raises what `statistics_here` raises.
        """
        return self.statistics_here(name, version)

    @here("statistics", internal=True)
    def statistics_here(self, name: str = "", version: int = NEWEST) -> list[dict[str, Any]]:
        """Return what this process has counted, an entry for each ready version.

        Raises CoreError(UNAVAILABLE) for a model that is being loaded, and CoreError(INVALID) for another
        model or version that is not READY: statistics answer 400, not 404, in Triton.
        """
        ready = [each for each in self._manager.versions() if each.state == "READY"]
        of_model = [each for each in ready if not name or name in (each.name, each.key)]
        found = [each for each in of_model if version in (NEWEST, each.version)]
        if name and not found:
            if of_model:
                raise invalid(f"requested model version is not available for model '{name}'")
            self._manager.raise_if_loading(name)
            raise invalid(f"requested model '{name}' is not available")
        return [
            {
                **named_entry(each.name, each.namespace),
                "version": str(each.version),
                **each.chain.statistics.as_dict(),
                "memory_usage": each.memory_usage(),
            }
            for each in found
        ]

    # Internal: clients read metrics from the port of --allow-metrics only.
    @question("metrics", _metrics, encode=merging.families_as_values, internal=True)
    async def metrics(self) -> list[Family]:
        """Return every metric family with its samples of now."""
        return self._collect()

    @here("metrics", internal=True)
    def metrics_here(self) -> list[Family]:
        """Return every metric family of this process only."""
        return self._collect()
