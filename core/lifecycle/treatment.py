"""Treatment: repository agents around the load of a model.

ManagedModel ─► [treated] ─► Treated.  The resulting source is loaded like any other. It stays as long as a
version that was loaded from it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from core.lifecycle.host import Host
from core.repository import ModelSource
from core.repository.agents import Treated
from core.repository.agents.known import find_agent


@asynccontextmanager
async def treated(source: ModelSource, host: Host) -> AsyncIterator[tuple[ModelSource | None, str]]:
    """Yield the source that agents produce, or None and why not. Loop thread; agents run on worker threads.

    The block loads the source: its end reports success to the agents, an exception reports a failure.
    """
    directory = Treated(source, partial(find_agent, directory=host.options.repoagent_directory))
    source.directory.hold()  # released when `directory` is
    directory.hold()
    try:
        found, refusal = await host.run(_treat, directory, source)
        try:
            yield found, refusal
        except BaseException:
            await host.run(directory.fail)
            raise
        await host.run(directory.complete)
    finally:
        await host.let_go(directory)


def _treat(directory: Treated, source: ModelSource) -> tuple[ModelSource | None, str]:
    try:
        # All versions: agents see the whole model folder, and may derive versions from others.
        source.directory.fetch(list(source.versions))
        return directory.treat(), ""
    except Exception as error:
        return None, getattr(error, "message", "") or f"{type(error).__name__}: {error}"
