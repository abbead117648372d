"""Supervisor: the process of a server with --workers=N that starts the workers. It serves no requests.

    ports ─► N workers ─► all have started ─► [wait, restart, relay] ─► signal ─► all drain ─► exit status

It imports no models or arrays, so that a crash of their code cannot end it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import time
from collections.abc import Coroutine, Sequence
from functools import partial
from typing import Any

from core import plugins
from core.devices.visible import gpus
from core.errors import CoreError, Kind
from core.options import Options, check_server, reads_again
from core.system import service_manager
from core_workers.checks import not_shared
from core_workers.delays import Delays
from core_workers.exchange import Exchange
from core_workers.operation import Operation
from core_workers.ports import Ports
from core_workers.process import Settings, WorkerProcess, start_worker
from core_workers.relay import Relay
from core_workers.tables import SharedTables

logger = logging.getLogger("core")

_LAST_SECONDS_S = 2.0  # added to --exit-timeout-secs, the workers' own time limit


class Supervisor:
    """Starts and restarts the workers and relays their messages. Not thread-safe: event loop only.

    arguments   arguments of the command line, without the program
    """

    def __init__(self, options: Options, arguments: Sequence[str]):
        self._options = options
        self._arguments = list(arguments)
        self._exchange = Exchange()
        self._relay = Relay(self._exchange, dict.fromkeys(range(1, options.workers + 1), 0))
        self._workers: dict[int, WorkerProcess] = {}
        self._delays = Delays()
        self._end = asyncio.Event()
        self._launching = asyncio.Lock()  # `_stop` waits for it, to know all workers
        self._tasks: set[asyncio.Task[None]] = set()
        self._ports: Ports | None = None
        self._tables: SharedTables | None = None

    async def run(self) -> int:
        """Run the workers until SIGINT or SIGTERM, or until they cannot start; return the exit status.

        It is 0 if the server could start, and all workers ended with status 0; else 1.
        """
        self._watch_signals()
        failure = ""
        try:
            check_server(self._options)
            for text in not_shared(self._options, gpus()):
                logger.warning("%s", text)
            plugins.ask("core_workers_starting", options=self._options)
            self._tables = SharedTables(self._options.workers)
            self._ports = Ports(self._options)
            failure = await self._start()
            if not failure:
                await self._end.wait()
        except CoreError as error:
            failure = f"{error.kind.title} - {error.message}"
        except OSError as error:
            failure = f"{Kind.INTERNAL.title} - cannot start a worker: {error}"
        drained = await self._stop()
        if self._ports is not None:
            self._ports.close()
        if self._tables is not None:
            self._tables.close()
        if failure:
            print(f"error: creating server: {failure}", file=sys.stderr)
        return 0 if drained and not failure else 1

    # start and end --------------------------------------------------------

    async def _start(self) -> str:
        """Start all workers, and wait until each has loaded its models or one cannot serve.

        Return the reason why the server cannot serve; "" if it can, or if a signal ends it. Raises OSError if
        a process cannot be started.
        """
        numbers = list(self._relay.restarts)
        operation = self._exchange.begin(numbers)
        logger.info("starting %d workers, each with all models", len(numbers))
        async with self._exchange.turn:
            for number in numbers:
                worker = await self._launch(number, operation.number)
                worker.started.add_done_callback(partial(_tell, operation, number))
                self._exchange.join(number)
            reasons = await self._unless_ended(
                *(worker.started for worker in self._workers.values())
            )
        self._exchange.end(operation)
        # A worker may have ended after it has loaded its models.
        reasons += [
            f"{Kind.INTERNAL.title} - worker {worker.number} {worker.how_it_ended()}"
            for worker in self._workers.values()
            if worker.ended.is_set() and not self._end.is_set()
        ]
        if failed := [reason for reason in reasons if reason]:
            return failed[0]
        if not self._end.is_set():
            self._relay.complete = True
            for number in numbers:
                self._delays.up(number)
            logger.info("all %d workers are up", len(numbers))
            service_manager.ready()
            self._do(self._poll())
        return ""

    async def _unless_ended(self, *futures: asyncio.Future[str]) -> list[str]:
        """Wait until all futures are done; return their results in order.

        At the first result that is a failure (not ""), or when the server ends, return only the results of
        those that are done by then.
        """
        ending = asyncio.ensure_future(self._end.wait())
        waiting: set[asyncio.Future[Any]] = set(futures)
        while waiting and not ending.done():
            done, _ = await asyncio.wait({*waiting, ending}, return_when=asyncio.FIRST_COMPLETED)
            waiting -= done
            if any(each.result() for each in done - {ending}):
                break
        ending.cancel()
        return [each.result() for each in futures if each.done()]

    async def _launch(
        self, number: int, operation: int, *, replacement: bool = False
    ) -> WorkerProcess:
        assert self._ports is not None and self._tables is not None
        async with self._launching:
            ports, listening = self._ports.chosen, self._ports.listening
            settings = Settings(
                number, operation, replacement, ports, listening, self._tables.files
            )
            worker = self._workers[number] = await start_worker(self._arguments, settings)
        self._exchange.connect(number, worker.send)
        worker.listen(self._relay.received)
        if self._end.is_set():
            worker.send({"kind": "stop"})
        self._look()  # it may have ended before it was in `_workers`
        return worker

    async def _stop(self) -> bool:
        """Tell all workers to end; kill all if one does not in time. Return whether all have status 0."""
        self._end.set()
        service_manager.stopping()
        deadline = time.monotonic() + self._options.exit_timeout_secs + _LAST_SECONDS_S
        async with self._launching:
            pass
        for worker in self._workers.values():
            worker.send({"kind": "stop"})
        ended = [asyncio.ensure_future(each.ended.wait()) for each in self._workers.values()]
        if ended:
            _, late = await asyncio.wait(ended, timeout=max(0.0, deadline - time.monotonic()))
            if late:
                text = (
                    "failed to stop server: Internal - Exit timeout expired. Exiting immediately."
                )
                print(text, file=sys.stderr, flush=True)
                for worker in self._workers.values():
                    worker.kill()
                await asyncio.wait(late)
        self._relay.close()
        for task in self._tasks:
            task.cancel()
        return all(worker.status == 0 for worker in self._workers.values())

    def _watch_signals(self) -> None:
        """Install handlers: SIGINT and SIGTERM end the server, a second one at once; SIGCHLD runs `_look`.

        SIGHUP runs `_read_again`, if the options name files to read again or a service manager listens.
        """
        loop = asyncio.get_running_loop()

        def received(number: int) -> None:
            if self._end.is_set():
                for worker in self._workers.values():
                    worker.kill()
                print("Exiting immediately.", file=sys.stderr, flush=True)
                logging.shutdown()
                os._exit(1)
            self._end.set()
            print(f"Signal ({number}) received.", flush=True)

        for each in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(each, received, int(each))
        loop.add_signal_handler(signal.SIGCHLD, self._look)
        if reads_again(self._options) or service_manager.listens():
            loop.add_signal_handler(signal.SIGHUP, self._read_again)

    def _read_again(self) -> None:
        with service_manager.reloading():
            for worker in self._workers.values():
                worker.read_again()

    # workers that end --------------------------------------------------------

    def _look(self) -> None:
        """Find the workers that have ended since the last call, and remove them from exchange and tables.

        Unless the server ends, log each one. Start a replacement if all workers of the start were up before,
        and unless the worker is itself a replacement that does not serve yet: `_replace` tries again then.
        """
        for worker in list(self._workers.values()):
            if worker.ended.is_set() or not worker.look():
                continue
            self._exchange.leave(worker.number)
            if self._tables is not None:
                self._tables.clear(worker.number - 1)
            if self._end.is_set():
                continue
            logger.error(
                "worker %d (process %d) %s", worker.number, worker.pid, worker.how_it_ended()
            )
            if self._relay.complete and not worker.replacing:
                self._do(self._replace(worker.number))

    async def _replace(self, number: int) -> None:
        """Restart a worker, after growing delays, until it serves or the server ends."""
        while True:
            await asyncio.sleep(self._delays.next_s(number))
            if self._end.is_set():
                return
            self._relay.restarts[number] += 1
            logger.info(
                "starting worker %d again, restart %d", number, self._relay.restarts[number]
            )
            async with self._exchange.turn:
                try:
                    reason = await self._admit(await self._launch(number, 0, replacement=True))
                except OSError as error:
                    reason = f"cannot be started: {error}"
            if not reason:
                self._delays.up(number)
                logger.info("worker %d is up again", number)
                return
            if not self._end.is_set():
                logger.error("worker %d cannot serve: %s", number, reason)

    async def _admit(self, worker: WorkerProcess) -> str:
        """Let a replacement that has just been started serve; return "" when it does.

        It loads its models, runs the changes of the ledger, and opens its ports. If it cannot serve, wait
        until it has ended, and return the reason. The caller holds the turn.
        """
        reason = await worker.started
        if not reason:
            await self._exchange.catch_up(worker.number)
            worker.send({"kind": "open"})
            waiting = [asyncio.ensure_future(each.wait()) for each in (worker.opened, worker.ended)]
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for each in waiting:
                each.cancel()
        if reason or worker.ended.is_set():
            await worker.ended.wait()
            return reason or worker.how_it_ended()
        worker.replacing = False
        self._exchange.join(worker.number)
        return ""

    async def _poll(self) -> None:
        """In mode poll, let all workers poll the repositories at the same time, again and again.

        In other modes return at once. Polls at different times would make them serve different versions for
        up to one interval.
        """
        while self._options.model_control_mode == "poll":
            await asyncio.sleep(self._options.repository_poll_secs)
            await self._exchange.change("repository.poll", b"[]")

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("the supervisor has made a mistake", exc_info=error)


def _tell(operation: Operation, number: int, started: asyncio.Future[str]) -> None:
    """End a worker's part in the operation of the start: as a failure, if it cannot serve.

    started   done: "", or the reason why the worker cannot serve
    """
    operation.ended(number, started.result())


def supervise(options: Options, arguments: Sequence[str]) -> int:
    """Run the server's workers until SIGINT or SIGTERM and return the exit status.

    arguments   arguments of the command line, without the program; the workers parse them again
    """
    return asyncio.run(Supervisor(options, arguments).run())
