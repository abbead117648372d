"""Model repositories in cloud storage: what lies in a bucket becomes folders of this machine.

    url ─► Place ─► Store ─► CloudRepository ─► core
                      └──► Cache ─► CloudDirectory ─► the versions that load

address.py       URLs, in all of Triton's forms
credentials.py   environment and file with the keys of stores
options.py       what the file systems of fsspec are opened with
files.py         what a listing says of an object, and which names may become paths
failure.py       errors of many libraries as a few kinds, in words
store.py         one place: list, fetch; with retries and limits of time
cache.py         files that were fetched, and the folders made of them
repository.py    all that as a Repository

fsspec and what it needs for a store is imported on a worker thread, when a place is first asked.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import core

if TYPE_CHECKING:
    from core.options import Flags, Options
    from core_cloud.repository import CloudRepository

logger = logging.getLogger("core")


@core.hookimpl
def core_add_options(parser: Flags) -> None:
    """Add --cloud-cache-directory."""
    parser.add(
        "cloud-cache-directory",
        "",
        "Folder that keeps what is fetched of repositories in cloud storage, from one start to the next and "
        "for several servers; without it a temporary one holds what is loaded.",
    )


@core.hookimpl(trylast=True)  # other plugins first: fsspec may know their URLs too
def core_open_repository(url: str, options: Options) -> CloudRepository:
    """Return the repository at a URL of Triton's, or of fsspec's; nothing is asked yet.

    Raises CoreError(INVALID) for a URL that names no bucket.
    """
    # Imported here: the process that only starts workers needs none of it.
    from core_cloud.repository import open_cloud

    return open_cloud(url, _kept(options))


@core.hookimpl
def core_workers_starting(options: Options) -> None:
    """Warn of downloads that each worker does for itself."""
    clouds = [url for url in options.model_repository if "://" in url]
    if clouds and not _kept(options):
        logger.warning(
            "--model-repository: with --workers=%d each worker fetches the models of '%s' for itself; "
            "--cloud-cache-directory lets them share what was fetched",
            options.workers,
            clouds[0],
        )


def _kept(options: Options) -> str:
    """The folder that keeps what was fetched; "" for a temporary one."""
    return str(options.added.get("cloud_cache_directory", ""))
