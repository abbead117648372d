"""Submitting, cancelling and deleting jobs: what callers do."""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from core.errors import CoreError, Exhausted, invalid, not_found
from core_jobs.job import CANCELLED, QUEUED, RUNNING, Job, Origin, Submission
from core_jobs.store.database import Database
from core_jobs.store.rows import job_of, one

_FOR_RESULTS = 0.9  # of the folder: above it, new jobs are refused
_ROW_BYTES = 64  # of a row beside its texts and its body


@dataclass(frozen=True)
class CallerLimits:
    """What one caller may keep.

    jobs    that wait or run
    bytes   of requests and results; 0 for no limit
    """

    jobs: int
    bytes: int


def submit(db: Database, wanted: Submission, limits: CallerLimits) -> tuple[Job, bool]:
    """Store a job; return it, and whether it is a new one.

    A submission with the idempotency key of an earlier one returns that job.
    Raises Exhausted at a limit, CoreError(INVALID) for the key of another submission, FolderFull.
    """
    with db.transaction(durable=True) as sql:
        if (known := _repeated(sql, wanted)) is not None:
            return known, False
        size = sum(len(body) for body in wanted.bodies)
        _check_limits(sql, wanted.caller, size, limits)
        taken = size + _ROW_BYTES * len(wanted.bodies) + _bytes_of(wanted.origins)
        if db.used_bytes() + taken > _FOR_RESULTS * db.most_bytes:
            raise Exhausted(
                f"the jobs of this server take {db.used_bytes()} bytes and this one {taken} more, of the "
                f"{int(_FOR_RESULTS * db.most_bytes)} for new jobs (--jobs-max-bytes); delete jobs whose "
                "results are no longer needed, or try again later",
                60.0,
            )
        return _inserted(sql, wanted, size, db.now_s()), True


def _bytes_of(origins: Sequence[Origin]) -> int:
    """Return the bytes of the rows of the tables `files` and `origins`."""
    files = (origins[each.start] for each in _files(origins))
    names = sum(len(each.file.encode()) + len(each.input.encode()) + _ROW_BYTES for each in files)
    return names + sum(len(each.place) + _ROW_BYTES for each in origins)


def _files(origins: Sequence[Origin]) -> Iterator[range]:
    """Yield the indexes of the requests of each file."""
    first = 0
    for _, group in groupby(origins, lambda each: each.file):
        after = first + sum(1 for _ in group)
        yield range(first, after)
        first = after


def _repeated(sql: sqlite3.Connection, wanted: Submission) -> Job | None:
    if not wanted.idempotency_key:
        return None
    row = sql.execute(
        "SELECT * FROM jobs WHERE caller = ? AND idempotency_key = ?",
        (wanted.caller, wanted.idempotency_key),
    ).fetchone()
    if row is None:
        return None
    if row["digest"] != wanted.digest:
        raise invalid(
            f"the Idempotency-Key '{wanted.idempotency_key}' belongs to job {row['id']}, which has other "
            "requests, another model or other settings; use a new key for new work"
        )
    return job_of(row)


def _check_limits(sql: sqlite3.Connection, caller: str, size: int, limits: CallerLimits) -> None:
    who = caller or "the clients of this server"
    open_jobs = sql.execute(
        "SELECT count(*) FROM jobs WHERE caller = ? AND state IN (?, ?)", (caller, QUEUED, RUNNING)
    ).fetchone()[0]
    if open_jobs >= limits.jobs:
        raise Exhausted(
            f"{who}: {open_jobs} jobs wait or run, the limit is {limits.jobs} (--jobs-per-caller); wait for "
            "one of them, or cancel one",
            5.0,
        )
    if not limits.bytes:
        return
    kept = sql.execute(
        "SELECT coalesce(sum(bytes + result_bytes), 0) FROM jobs WHERE caller = ?", (caller,)
    ).fetchone()[0]
    if kept + size > limits.bytes:
        raise Exhausted(
            f"{who}: jobs keep {kept} bytes and this one has {size}, the limit is {limits.bytes} "
            "(--jobs-caller-bytes); delete jobs whose results are no longer needed",
            60.0,
        )


def _inserted(sql: sqlite3.Connection, wanted: Submission, size: int, now_s: float) -> Job:
    id = secrets.token_hex(16)
    key = sql.execute(
        "INSERT INTO jobs (id, caller, model, version, kind, headers, state, total, bytes, idempotency_key, "
        "digest, created_s, deadline_s, keep_s) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(id, wanted.caller, wanted.model, wanted.version, wanted.kind),
            *(json.dumps(dict(wanted.headers)), QUEUED, len(wanted.bodies), size),
            *(wanted.idempotency_key or None, wanted.digest, now_s),
            *(wanted.deadline_s, wanted.keep_s),
        ),
    ).lastrowid
    sql.executemany(
        "INSERT INTO requests (job, item, body) VALUES (?, ?, ?)",
        ((key, index, body) for index, body in enumerate(wanted.bodies)),
    )
    for number, indexes in enumerate(_files(wanted.origins)):
        _insert_file(sql, (key, number), wanted.origins, indexes)
    return job_of(sql.execute("SELECT * FROM jobs WHERE key = ?", (key,)).fetchone())


def _insert_file(
    sql: sqlite3.Connection, file: tuple[int | None, int], origins: Sequence[Origin], indexes: range
) -> None:
    """Insert the rows of one file.

    file      key of its job, and its number
    indexes   of its requests
    """
    job, number = file
    first = origins[indexes.start]
    sql.execute(
        "INSERT INTO files (job, number, name, form, input, first, total) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (*file, first.file, first.form, first.input, indexes.start, len(indexes)),
    )
    sql.executemany(
        "INSERT INTO origins (job, item, file, place) VALUES (?, ?, ?, ?)",
        ((job, index, number, origins[index].place) for index in indexes),
    )


def cancel(db: Database, caller: str | None, id: str) -> Job:
    """Cancel a job: at once if it waits; its owner ends one that runs. An ended job stays as it is.

    caller   who may do so; None for an operator
    Raises CoreError(NOT_FOUND).
    """
    with db.transaction() as sql:
        job = _own(sql, caller, id)
        if job.state == QUEUED:
            sql.execute(
                "UPDATE jobs SET state = ?, ended_s = ?, bytes = 0, headers = '{}', cancelling = 1 "
                "WHERE key = ?",
                (CANCELLED, db.now_s(), job.key),
            )
            sql.execute("DELETE FROM requests WHERE job = ?", (job.key,))
        elif job.state == RUNNING:
            sql.execute("UPDATE jobs SET cancelling = 1 WHERE key = ?", (job.key,))
        return _own(sql, caller, id)


def delete(db: Database, caller: str, id: str) -> bool:
    """Delete an ended job and its results; return whether it had ended, else it stays.

    Raises CoreError(NOT_FOUND).
    """
    with db.transaction() as sql:
        job = _own(sql, caller, id)
        if job.has_ended:
            remove(sql, [job.key])
        return job.has_ended


def remove(sql: sqlite3.Connection, keys: list[int]) -> None:
    """Delete jobs, their requests and results, within a transaction."""
    rows = [(key,) for key in keys]
    sql.executemany("DELETE FROM requests WHERE job = ?", rows)
    sql.executemany("DELETE FROM results WHERE job = ?", rows)
    sql.executemany("DELETE FROM files WHERE job = ?", rows)
    sql.executemany("DELETE FROM origins WHERE job = ?", rows)
    sql.executemany("DELETE FROM jobs WHERE key = ?", rows)


def _own(sql: sqlite3.Connection, caller: str | None, id: str) -> Job:
    row = one(sql, caller, id)
    if row is None:
        raise unknown(id)
    return job_of(row)


def unknown(id: str) -> CoreError:
    """Return the error for a job that does not exist, or belongs to another caller."""
    return not_found(
        f"there is no job '{id[:64]}': it has another name, another caller, or has expired"
    )
