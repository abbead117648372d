"""Everywhere: the management of a server with several workers, in each of them.

frontend ─► [Everywhere] ─► Member ─► the supervisor ─► the handlers below, in every worker.  What all
workers have done in one order is the same in each, so settings and regions are read where one is.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from core.errors import CoreError, Kind, unavailable
from core.fleet import merging
from core.fleet.lent import Lent, opened_elsewhere
from core.fleet.management import Management
from core.fleet.member import Answers, Changed, Handler, Member
from core.repository import Place
from core.request import NEWEST
from core.telemetry.families import Family, Sample
from core.telemetry.metrics.catalog import family

if TYPE_CHECKING:
    from core.server import Server

_LOG_SETTINGS = ("log_info", "log_warning", "log_error", "log_verbose_level", "log_format")
_IS_ABSENT = (Kind.INVALID, Kind.UNAVAILABLE)  # of statistics: not loaded, or not yet
_LOOK_S = 0.1  # between two questions whether the last request has finished
_TRACE_SETTINGS = ("trace_level", "trace_rate", "trace_count", "log_frequency")


class Everywhere(Management):
    """Control operations of a server of several workers, which are done by all of them. Loop thread only."""

    def __init__(self, server: Server, member: Member):
        super().__init__(server)
        self._member = member
        self._lent = Lent(self._ended)
        self._tasks: set[asyncio.Task[None]] = set()
        member.serve(self._handlers())

    # questions ------------------------------------------------------------

    async def ready(self) -> bool:
        """Whether every worker that takes connections can serve, and all have been up."""
        if not self._server.ready():
            return False
        return _all_true(await self._member.ask("ready"))

    async def model_ready(self, name: str, version: int = NEWEST) -> bool:
        if not self._server.model_ready(name, version):
            return False
        return _all_true(await self._member.ask("model_ready", name, version))

    async def statistics(self, name: str = "", version: int = NEWEST) -> list[dict[str, Any]]:
        answers = await self._member.ask("statistics", name, version)
        if answers.values and all(each.kind in _IS_ABSENT for each in answers.errors.values()):
            # While a model comes or goes, some have it and some do not.
            answers.errors.clear()
        return merging.statistics(answers.all())

    async def metrics(self) -> list[Family]:
        answers = await self._member.ask("metrics")
        found = merging.families(map(merging.families_of_values, answers.all()))
        return [*found, *_of_workers(answers)]

    async def index(self, ready_only: bool = False) -> list[dict[str, Any]]:
        answers = await self._member.ask("index")
        answers.all()
        return merging.index(answers.values, ready_only)

    # changes --------------------------------------------------------------

    async def load(self, name: str, parameters: Mapping[str, Any]) -> None:
        """All workers serve the model then, or none serves anything else than before."""
        _all_done(
            await self._member.change("load", name, dict(parameters), thing=f"model {name}"),
            "the others serve what they served",
        )

    async def unload(self, name: str, unload_dependents: bool = False) -> None:
        answers = await self._member.change(
            "unload", name, unload_dependents, thing=f"model {name}"
        )
        _all_done(answers, "the others have unloaded it")

    async def join(self, name: str, label: str, location: str, folder: str) -> None:
        place = (name, label, location, folder)
        answers = await self._member.change("join", *place, thing=f"place {name}")
        _all_done(answers, "the others serve what they served")

    async def leave(self, name: str) -> None:
        answers = await self._member.change("leave", name, thing=f"place {name}", forgets=True)
        _all_done(answers, "the others have unloaded it")
        # Other changes need not wait for requests that take long.
        while not _all_true(await self._member.ask("is_empty", name)):
            await asyncio.sleep(_LOOK_S)

    async def load_by_model(self, name: str, parameters: Mapping[str, Any], loading: bool) -> None:
        if loading:  # as its fellows of the other workers do, each for its own
            await self._member.alone(self._server.load_here(name, parameters))
        else:
            self._refuse_waiting_for_itself(name)
            await self.load(name, parameters)

    async def unload_by_model(self, name: str, unload_dependents: bool, loading: bool) -> None:
        if loading:
            await self._member.alone(self._server.unload_here(name, unload_dependents))
        else:
            self._refuse_waiting_for_itself(name)
            await self.unload(name, unload_dependents)

    def _refuse_waiting_for_itself(self, name: str) -> None:
        """Changes follow each other: what is done in the course of one cannot wait for another."""
        if self._member.changing:
            raise unavailable(
                f"a model cannot load or unload '{name}' while models are being loaded: with "
                f"--workers={self._member.count} changes of models follow each other; call it from "
                "execute, and again when this fails"
            )

    async def change_log_settings(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        return await self._set("log", _LOG_SETTINGS, changes)

    async def change_trace_settings(
        self, changes: Mapping[str, Any], model: str = ""
    ) -> dict[str, Any]:
        if not changes:  # gRPC reads them so
            return self._server.trace_settings(model)
        return await self._set("trace", _TRACE_SETTINGS, changes, model)

    async def _set(
        self, area: str, known: tuple[str, ...], changes: Mapping[str, Any], *model: str
    ) -> dict[str, Any]:
        # Settings that are changed together are one thing to catch up: later ones go before earlier.
        names = [name for name in known if name in changes]
        thing = " ".join([area, *names, *model])
        answers = await self._member.change(f"set_{area}", dict(changes), *model, thing=thing)
        _all_done(answers, "the others have their settings of before")
        settings: dict[str, Any] = answers.values[self._member.number]
        return settings

    async def register_memory(self, name: str, key: str, offset: int, byte_size: int) -> None:
        region = (name, key, offset, byte_size)
        answers = await self._member.change("register", *region, thing=f"memory {name}")
        _all_done(answers, "the others have let it go")

    async def unregister_memory(self, name: str = "") -> None:
        thing = f"memory {name}" if name else "memory"
        answers = await self._member.change("unregister", name, thing=thing, forgets=True)
        _all_done(answers, "the others have let it go")

    async def register_cuda_memory(
        self, name: str, handle: bytes, device: int, byte_size: int
    ) -> None:
        region = (name, handle, device, byte_size)
        answers = await self._member.change("register_cuda", *region, thing=f"gpu-memory {name}")
        _all_done(answers, "the others have let it go")

    async def unregister_cuda_memory(self, name: str = "") -> None:
        thing = f"gpu-memory {name}" if name else "gpu-memory"
        answers = await self._member.change("unregister_cuda", name, thing=thing, forgets=True)
        _all_done(answers, "the others have let it go")

    async def lend_memory(self, name: str, file: int, byte_size: int) -> None:
        # The others open the descriptor of this process: its number says nothing to them.
        region = (name, os.getpid(), file, byte_size)
        answers = await self._member.change("lend", *region, thing=f"lent {name}")
        _all_done(answers, "the others have let it go")

    async def give_back_memory(self, name: str) -> None:
        answers = await self._member.change("give_back", name, thing=f"lent {name}", forgets=True)
        _all_done(answers, "the others have let it go")

    def _ended(self, name: str) -> None:
        """The worker that a region came by way of has ended, and so has its client's connection."""
        self._server.shared_memory.give_back(name)
        task = asyncio.get_running_loop().create_task(self._given_back(name))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _given_back(self, name: str) -> None:
        """Those who come later need not know it; each worker that has seen the end says so."""
        with contextlib.suppress(CoreError):
            await self.give_back_memory(name)

    # what this worker does when it is asked ---------------------------------

    def _handlers(self) -> dict[str, Handler]:
        here = self._server

        async def ready() -> bool:
            return await here.check()

        async def model_ready(name: str, version: int) -> bool:
            return await here.check_model(name, version)

        async def statistics(name: str, version: int) -> list[dict[str, Any]]:
            return here.statistics(name, version)

        async def metrics() -> list[Any]:
            return merging.families_as_values(here.metrics())

        async def index() -> list[dict[str, Any]]:
            await here.look()
            return here.index()

        async def load(name: str, parameters: dict[str, Any]) -> None:
            await here.load_here(name, parameters)

        async def unload(name: str, unload_dependents: bool) -> Changed:
            known = here.knows(name)
            await here.unload_here(name, unload_dependents)
            return Changed(idle=not known)

        async def join(*place: str) -> None:
            await here.join_here(Place(*place))

        async def leave(name: str) -> None:
            await here.leave_here(name)

        async def is_empty(name: str) -> bool:
            return here.is_empty(name)

        async def poll() -> None:
            await here.poll()

        async def set_log(changes: dict[str, Any]) -> Changed:
            before = here.log_settings()
            del before["log_file"]
            settings = here.change_log_settings(changes)
            return Changed(settings, undo=lambda: _ignore(here.change_log_settings(before)))

        async def set_trace(changes: dict[str, Any], model: str) -> Changed:
            return Changed(here.change_trace_settings(changes, model))

        async def register(name: str, key: str, offset: int, byte_size: int) -> Changed:
            here.shared_memory.register(name, key, offset, byte_size)
            return Changed(undo=lambda: here.shared_memory.unregister(name))

        async def unregister(name: str) -> None:
            here.shared_memory.unregister(name)

        async def register_cuda(name: str, handle: bytes, device: int, byte_size: int) -> Changed:
            await here.cuda_shared_memory.register(name, handle, device, byte_size)
            return Changed(undo=lambda: here.cuda_shared_memory.unregister(name))

        async def unregister_cuda(name: str) -> None:
            here.cuda_shared_memory.unregister(name)

        async def lend(name: str, process: int, file: int, byte_size: int) -> Changed:
            with opened_elsewhere(process, file) as found:
                here.shared_memory.lend(name, found, byte_size)
            self._lent.watch(name, process)
            return Changed(undo=lambda: here.shared_memory.give_back(name))

        async def give_back(name: str) -> None:
            self._lent.forget(name)
            here.shared_memory.give_back(name)

        questions = (ready, model_ready, statistics, metrics, index, is_empty)
        changes = (load, unload, join, leave, poll, set_log, set_trace, register, unregister)
        memory = (register_cuda, unregister_cuda, lend, give_back)
        return {each.__name__: each for each in (*questions, *changes, *memory)}


def _ignore(_: Any) -> None:
    """For a function whose result nobody wants."""


def _all_true(answers: Answers) -> bool:
    """A worker that has died meanwhile takes no connections, and is not asked."""
    return (
        answers.complete
        and not answers.silent
        and not answers.errors
        and all(answers.values.values())
    )


def _all_done(answers: Answers, otherwise: str) -> None:
    """Raises the error of the workers, if they have one: which of them, when some could.

    otherwise   what the others do then
    """
    errors = answers.errors
    if errors and not answers.values:
        raise next(iter(errors.values()))  # the first is this worker's
    for worker, error in errors.items():
        text = error.message.rstrip("\n")
        raise CoreError(error.kind, f"{text} (worker {worker}; {otherwise})")
    if not answers.values:
        raise unavailable("Server exiting")


def _of_workers(answers: Answers) -> list[Family]:
    return [
        family("core_workers", [Sample({}, len(answers.values))]),
        family(
            "core_worker_restarts",
            [Sample({"worker": str(each)}, count) for each, count in answers.restarts.items()],
        ),
    ]
