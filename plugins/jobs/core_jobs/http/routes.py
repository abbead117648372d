"""The table of the routes of jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core_jobs import CATEGORY
from core_jobs.http import services
from frontends.http.extra_routes import HttpRoutes
from frontends.http.route import row

if TYPE_CHECKING:
    from core.server import InferenceServer
    from core_jobs.jobs import Jobs

_MODEL = "/v2/models/(?P<model>[^/]+)(?:/versions/(?P<version>[0-9]+))?"
_JOB = "/v2/jobs/(?P<job>[^/]+)"

ROWS = (
    row("POST", f"{_MODEL}/jobs", CATEGORY, services.submit, brings_files=True),
    row("POST", f"{_MODEL}/jobs/files", CATEGORY, services.submit_files, brings_files=True),
    row("GET", "/v2/jobs", CATEGORY, services.listing),
    row("GET", _JOB, CATEGORY, services.state),
    row("GET", f"{_JOB}/files", CATEGORY, services.files),
    row("GET", f"{_JOB}/results", CATEGORY, services.results),
    row("POST", f"{_JOB}/cancel", CATEGORY, services.cancel),
    row("DELETE", _JOB, CATEGORY, services.delete),
)


def add_to(server: InferenceServer, jobs: Jobs) -> None:
    """Add the routes to the HTTP port of a server. Call it in core_server_starting."""
    routes = HttpRoutes.of(server)
    routes.add(ROWS)
    routes.on_end(jobs.end_waits)
