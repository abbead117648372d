"""Treatment: repository agents around the load of a model.

ManagedModel ─► [treated] ─► Treated.  What agents make of a source is loaded as any other; it stays as long
as a version that was loaded from it.
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
    """What agents make of a source, or None and why not. Loop thread; agents run on worker threads.

    The block loads it: agents are told of its success when it ends, of a failure when it raises.
    """
    directory = Treated(source, partial(find_agent, directory=host.options.repoagent_directory))
    source.directory.hold()  # let go when `directory` is
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
        # All versions: agents see the model's folder as it is, and may make others of these.
        source.directory.fetch(list(source.versions))
        return directory.treat(), ""
    except Exception as error:
        return None, getattr(error, "message", "") or f"{type(error).__name__}: {error}"
