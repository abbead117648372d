"""Model repositories in cloud storage: fetch the objects of a bucket into folders of this machine.

    url ─► Place ─► Store ─► CloudRepository ─► core
                      └──► Cache ─► CloudDirectory ─► the versions that load

fsspec and its packages for a store are imported on a worker thread, when a place is first accessed.
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


@core.hookimpl(trylast=True)  # other plugins first: fsspec may also know their URLs
def core_open_repository(url: str, options: Options) -> CloudRepository:
    """Return the repository at a URL of Triton or of fsspec; it sends no request yet.

    Raises CoreError(INVALID) for a URL that names no bucket.
    """
    # Imported here: the supervisor of workers needs none of it.
    from core_cloud.repository import open_cloud

    return open_cloud(url, _kept(options))


@core.hookimpl
def core_workers_starting(options: Options) -> None:
    """Log a warning if each worker fetches the models separately."""
    clouds = [url for url in options.model_repository if "://" in url]
    if clouds and not _kept(options):
        logger.warning(
            "--model-repository: with --workers=%d each worker fetches the models of '%s' for itself; "
            "--cloud-cache-directory lets them share what was fetched",
            options.workers,
            clouds[0],
        )


def _kept(options: Options) -> str:
    """Return the value of --cloud-cache-directory, the folder for fetched files; "" for a temporary one."""
    return str(options.added.get("cloud_cache_directory", ""))
