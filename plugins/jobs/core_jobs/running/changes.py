"""Changes: lets calls wait until something happens to a job."""

from __future__ import annotations

import asyncio

from core_jobs.job import Job


class Changes:
    """Not thread-safe: call from the event loop only."""

    def __init__(self) -> None:
        self._waiting: dict[str, set[asyncio.Future[None]]] = {}
        self._ended = False

    @property
    def ended(self) -> bool:
        """Whether the server stops, so that nobody shall wait."""
        return self._ended

    @property
    def awaited(self) -> bool:
        """Whether a call waits for a change."""
        return bool(self._waiting)

    def tell(self, id: str) -> None:
        """Wake the calls that wait for a change of a job."""
        for future in self._waiting.pop(id, ()):
            if not future.done():
                future.set_result(None)

    def tell_all(self) -> None:
        """Wake every call that waits, because another process may have changed any job."""
        for id in list(self._waiting):
            self.tell(id)

    def end(self) -> None:
        """Wake every call, and let none wait from now on."""
        self._ended = True
        self.tell_all()

    def next(self, job: Job) -> asyncio.Future[None]:
        """Return a future that is done at the next change of a job. Call `drop` with it at the end."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._ended:
            future.set_result(None)
        else:
            self._waiting.setdefault(job.id, set()).add(future)
        return future

    def drop(self, job: Job, future: asyncio.Future[None]) -> None:
        """Forget a future of `next`."""
        found = self._waiting.get(job.id)
        if found is not None:
            found.discard(future)
            if not found:
                del self._waiting[job.id]
