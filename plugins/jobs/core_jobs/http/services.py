"""The services behind the routes of jobs."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

import orjson

from core.errors import invalid, not_found
from core_jobs.http.files import files_of
from core_jobs.http.query import number, query_of, truth, whole
from core_jobs.http.results import ResultLines, ended_within
from core_jobs.http.submission import submission_of
from core_jobs.job import REQUEST, STATES, Job, Submission
from core_jobs.jobs import Jobs
from core_jobs.store import rows, submitting
from core_jobs.store.submitting import CallerLimits, unknown
from frontends.http.errors import refusal
from frontends.http.interceptors import restrictions
from frontends.http.message import JSON_HEADERS, HttpRequest, HttpResponse
from frontends.http.options import HttpOptions
from frontends.http.services.metadata import json_answer
from frontends.shared.access import requirement

if TYPE_CHECKING:
    from core.server import InferenceServer

logger = logging.getLogger("core")

LINES_HEADERS = {"Content-Type": "application/x-ndjson"}
_MOST_WAIT_S = 60.0
_MOST_LISTED = 1000
_CANCEL_S = 5.0  # for the owner of a job to end it


async def submit(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Accept a request, or a batch of requests, as a job; return the job with status 202."""
    _check_inference(server, call)
    jobs = Jobs.of(server)
    return await _accepted(jobs, await submission_of(server, jobs.reader, caller_of(call), call))


async def submit_files(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Accept the files of a form as a job; return the job with status 202."""
    _check_inference(server, call)
    jobs = Jobs.of(server)
    return await _accepted(jobs, await files_of(server, jobs.reader, caller_of(call), call))


async def _accepted(jobs: Jobs, wanted: Submission) -> HttpResponse:
    options = jobs.options
    limits = CallerLimits(options.jobs_per_caller, options.jobs_caller_bytes)
    job, is_new = await jobs.disk.run(submitting.submit, wanted, limits)
    if is_new:
        logger.info(
            "job %s of %s waits: %d requests for model '%s'",
            job.id,
            job.caller or "a client",
            job.total,
            job.model,
        )
        jobs.runner.look()
    headers = {**JSON_HEADERS, "Location": f"/v2/jobs/{job.id}"}
    return HttpResponse(202 if is_new else 200, headers, orjson.dumps(job.document()))


async def state(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return the state of a job; with ?wait=SECONDS as soon as it has ended, or after that time."""
    query = query_of(call, ("wait",))
    wait_s = number("wait", query.get("wait", "0"), _MOST_WAIT_S)
    jobs = Jobs.of(server)
    job = await _job(jobs, call)
    if wait_s:
        _waits(call)
    found = await ended_within(jobs, job, wait_s) if wait_s else job
    if found is None:  # deleted meanwhile
        raise unknown(job.id)
    return json_answer(found.document())


async def listing(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return the jobs of the caller, the newest first: ?state=, ?limit=, ?after= the last one of a page."""
    query = query_of(call, ("state", "limit", "after"))
    wanted = query.get("state", "")
    if wanted and wanted not in STATES:
        raise invalid(f"state is '{wanted[:64]}'; expected one of {', '.join(STATES)}")
    most = whole("limit", query.get("limit", "100"), _MOST_LISTED, 1)
    jobs, caller, before = Jobs.of(server), caller_of(call), 0
    if (after := query.get("after")) is not None:
        last = await jobs.disk.run(rows.find, caller, after)
        if last is None:
            raise unknown(after)
        before = last.key
    found = await jobs.disk.run(rows.listed, rows.Wanted(caller, state=wanted), before, most + 1)
    page = found[:most]
    more = page[-1].id if len(found) > most else None
    return json_answer({"jobs": [job.document() for job in page], "after": more})


async def files(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return the files of a job, and how many requests of each have a result."""
    query_of(call, ())
    jobs = Jobs.of(server)
    job = await _job(jobs, call)
    return json_answer({"id": job.id, "files": await jobs.disk.run(rows.files_of, job.key)})


async def results(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return the results of an ended job.

    ?first=INDEX leaves out the first ones, ?file=NAME those of other files; ?follow=true waits.
    """
    query = query_of(call, ("first", "file", "follow"))
    first = whole("first", query.get("first", "0"), 2**31)
    follows = truth("follow", query.get("follow", "false"))
    jobs = Jobs.of(server)
    job = await _job(jobs, call)
    if not (job.has_ended or follows):
        answered = job.succeeded + job.failed
        return refusal(
            409,
            f"job {job.id} is {job.state}: {answered} of {job.total} requests have a result; wait for its "
            f"end with GET /v2/jobs/{job.id}?wait=30, or read the results as they come with ?follow=true",
        )
    if not job.has_ended:  # the download of an ended job is a request like any other
        _waits(call)
    if job.kind == REQUEST:
        return await _only_result(jobs, job)
    wanted = range(first, sys.maxsize)
    if (file := query.get("file")) is not None:
        place = await jobs.disk.run(rows.place_of_file, job.key, file)
        if place is None:
            raise not_found(
                f"job {job.id} has no file '{file[:255]}'; GET /v2/jobs/{job.id}/files lists them"
            )
        wanted = range(max(first, place.start), place.stop)
    found = ResultLines(jobs, job, wanted, follows=follows)
    call.reply = found
    return HttpResponse(200, LINES_HEADERS, b"", found)


async def _only_result(jobs: Jobs, job: Job) -> HttpResponse:
    """Return the response to the request of a job, as its model's own route does."""
    if not job.has_ended:
        ended = await ended_within(jobs, job, _MOST_WAIT_S)
        if ended is None:
            raise unknown(job.id)
        job = ended
    found = await jobs.disk.run(rows.results_after, job.key, -1, 1)
    if found:
        return HttpResponse(found[0].status, found[0].headers, found[0].body)
    why = f": {job.error}" if job.error else ""
    return refusal(409, f"job {job.id} is {job.state} and has no result{why}")


async def cancel(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Cancel a job; results that are there stay. An ended job stays as it is."""
    jobs = Jobs.of(server)
    job = await jobs.disk.run(submitting.cancel, caller_of(call), call.captures["job"])
    jobs.runner.cancel(job.key)
    jobs.changes.tell(job.id)
    _waits(call)
    found = await ended_within(jobs, job, _CANCEL_S)
    return json_answer((found or job).document())


async def delete(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Delete an ended job and its results."""
    jobs, id = Jobs.of(server), call.captures["job"]
    if await jobs.disk.run(submitting.delete, caller_of(call), id):
        return HttpResponse(204, {}, b"")
    return refusal(409, f"job {id} has not ended; cancel it first: POST /v2/jobs/{id}/cancel")


async def _job(jobs: Jobs, call: HttpRequest) -> Job:
    id: str = call.captures["job"]
    found = await jobs.disk.run(rows.find, caller_of(call), id)
    if found is None:
        raise unknown(id)
    return found


def _waits(call: HttpRequest) -> None:
    """Let the requests of the job have the place that the call has in the limits of its caller."""
    if call.active is not None:
        call.active.wait()


def caller_of(call: HttpRequest) -> str:
    """Return who owns the jobs of a call: the caller of a token, an address; "" if the server knows none."""
    return "" if call.caller is None else call.caller.text


def _check_inference(server: InferenceServer, call: HttpRequest) -> None:
    """Raise CoreError if the caller may not run inference: a job must be no way around a restriction."""
    required = restrictions(HttpOptions.of(server.options).http_restricted_api)
    if (error := required.objection("inference", call.headers.get)) is not None:
        raise error
    if call.caller is not None:
        call.caller.policy.check(call.caller, requirement("inference", changes=True))
