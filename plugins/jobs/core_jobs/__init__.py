"""Asynchronous jobs: requests that a server answers later, and that survive its restarts.

http/      the routes
running/   which process runs which job, and how requests get their results
store/     jobs, requests and results on disk
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import core
from core_jobs.options import JobsOptions

if TYPE_CHECKING:
    from core.options import Flags, Options
    from core.server import InferenceServer
    from core_jobs.metrics import JobsMetrics
    from core_jobs.running.ownership import FolderLock

CATEGORY = "jobs"  # of roles and restrictions

# Servers of one process, by the identity of their options.
_metrics: dict[int, JobsMetrics] = {}
_locks: list[FolderLock] = []  # of the supervisor, until it ends


@core.hookimpl
def core_add_options(parser: Flags) -> None:
    from frontends.shared.added_categories import add_category

    parser.add_section(JobsOptions)
    # Callers see their own jobs only, so those who may run inference may do all of it.
    add_category(CATEGORY, reading=("infer",), changing=("infer",))


@core.hookimpl
def core_open_metric_source(options: Options) -> JobsMetrics:
    from core_jobs.metrics import JobsMetrics

    _metrics[id(options)] = found = JobsMetrics()
    return found


@core.hookimpl
def core_workers_starting(options: Options) -> None:
    """Lock the folder for all workers, and create the store."""
    from core_jobs.running.ownership import FolderLock
    from core_jobs.store.database import Database

    found = JobsOptions.of(options)
    if found.jobs_folder:
        _locks.append(FolderLock(Path(found.jobs_folder)))
        Database(Path(found.jobs_folder), found.jobs_max_bytes).close()


@core.hookimpl
def core_server_starting(server: InferenceServer) -> None:
    """Open the store, add the routes, and go on with the jobs in the folder."""
    metrics = _metrics.pop(id(server.options), None)
    if not JobsOptions.of(server.options).jobs_folder:
        return
    from core_jobs.control import JobsControl
    from core_jobs.http import routes
    from core_jobs.jobs import Jobs

    jobs = Jobs.of(server)
    if metrics is not None:
        metrics.jobs = jobs
    server.control.add(JobsControl(jobs))
    routes.add_to(server, jobs)
