"""The way of a job from claim to end: what its owner does."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from core_jobs.job import CANCELLED, DONE, FAILED, QUEUED, RUNNING, Job, Result
from core_jobs.store.database import Database
from core_jobs.store.rows import job_of


def claim(db: Database, owner: str, most_running: int) -> Job | None:
    """Make `owner` the owner of the next job that waits; return it. None if none waits, or too many run.

    The next is the oldest of the caller with the fewest running jobs.
    """
    with db.transaction() as sql:
        running = sql.execute("SELECT count(*) FROM jobs WHERE state = ?", (RUNNING,)).fetchone()[0]
        if running >= most_running:
            return None
        row = sql.execute(
            "SELECT jobs.key FROM jobs LEFT JOIN (SELECT caller, count(*) AS count FROM jobs "
            "WHERE state = ? GROUP BY caller) AS busy ON busy.caller = jobs.caller "
            "WHERE state = ? ORDER BY coalesce(busy.count, 0), key LIMIT 1",
            (RUNNING, QUEUED),
        ).fetchone()
        if row is None:
            return None
        sql.execute(
            "UPDATE jobs SET state = ?, owner = ?, started_s = coalesce(started_s, ?) WHERE key = ?",
            (RUNNING, owner, db.now_s(), row["key"]),
        )
        return job_of(sql.execute("SELECT * FROM jobs WHERE key = ?", (row["key"],)).fetchone())


def record(db: Database, owner: str, key: int, results: Sequence[Result]) -> int:
    """Store results of a job, each once; return the bytes of all its results. Raises FolderFull.

    Results are dropped if `owner` does not own the job any more; then the sum is 0.
    """
    with db.transaction() as sql:
        row = sql.execute(
            "SELECT state, owner, result_bytes FROM jobs WHERE key = ?", (key,)
        ).fetchone()
        if row is None or row["owner"] != owner or row["state"] != RUNNING:
            return 0
        added, removed = 0, 0
        counts: Counter[tuple[int | None, bool]] = Counter()  # (number of a file, success)
        for each in results:
            request = sql.execute(
                "SELECT length(body), file FROM requests LEFT JOIN origins USING (job, item) "
                "WHERE job = ? AND item = ?",
                (key, each.index),
            ).fetchone()
            if request is None:
                continue
            sql.execute("DELETE FROM requests WHERE job = ? AND item = ?", (key, each.index))
            headers = json.dumps(dict(each.headers)) if each.headers else ""
            sql.execute(
                "INSERT INTO results (job, item, status, headers, body) VALUES (?, ?, ?, ?, ?)",
                (key, each.index, each.status, headers, each.body),
            )
            removed += request[0]
            added += len(each.body)
            counts[request[1], each.is_success] += 1
        sql.execute(
            "UPDATE jobs SET bytes = bytes - ?, result_bytes = result_bytes + ? WHERE key = ?",
            (removed, added, key),
        )
        _count(sql, key, counts)
        return int(row["result_bytes"]) + added


def _count(
    sql: sqlite3.Connection, key: int, counts: Mapping[tuple[int | None, bool], int]
) -> None:
    """Add results to the counts of a job and of its files.

    counts   (number of a file or None, whether they succeeded) → number of results
    """
    for (file, is_success), count in counts.items():
        column = "succeeded" if is_success else "failed"
        sql.execute(f"UPDATE jobs SET {column} = {column} + ? WHERE key = ?", (count, key))
        if file is not None:
            sql.execute(
                f"UPDATE files SET {column} = {column} + ? WHERE job = ? AND number = ?",
                (count, key, file),
            )


def finish(db: Database, owner: str, key: int, state: str, error: str = "") -> Job | None:
    """End a job, and drop its requests without a result; return it. None if `owner` does not own it.

    state   DONE becomes FAILED if no request succeeded; the error is then that of its first request
    """
    with db.transaction() as sql:
        row = sql.execute(
            "SELECT * FROM jobs WHERE key = ? AND owner = ? AND state = ?", (key, owner, RUNNING)
        ).fetchone()
        if row is None:
            return None
        if state == DONE and row["failed"] and not row["succeeded"]:
            state = FAILED
            first = sql.execute(
                "SELECT body FROM results WHERE job = ? ORDER BY item LIMIT 1", (key,)
            ).fetchone()
            error = _text_of(bytes(first["body"]))
        # First what frees space: the update may need it.
        sql.execute("DELETE FROM requests WHERE job = ?", (key,))
        sql.execute(
            "UPDATE jobs SET state = ?, error = ?, ended_s = ?, owner = NULL, bytes = 0, headers = '{}' "
            "WHERE key = ?",
            (state, error, db.now_s(), key),
        )
        return job_of(sql.execute("SELECT * FROM jobs WHERE key = ?", (key,)).fetchone())


def _text_of(body: bytes) -> str:
    """Return the text of the error in a body `{"error": text}`."""
    try:
        return str(json.loads(body)["error"])
    except (ValueError, KeyError, TypeError):
        return "its request failed"


def cancelled_of(db: Database, owner: str) -> list[int]:
    """Return the keys of the jobs of an owner that their callers have cancelled."""
    with db.reading() as sql:
        rows = sql.execute(
            "SELECT key FROM jobs WHERE state = ? AND owner = ? AND cancelling", (RUNNING, owner)
        ).fetchall()
    return [row["key"] for row in rows]


def owners(db: Database) -> set[str]:
    """Return the owners of all jobs that run."""
    with db.reading() as sql:
        rows = sql.execute("SELECT DISTINCT owner FROM jobs WHERE state = ?", (RUNNING,)).fetchall()
    return {row["owner"] for row in rows}


def release(db: Database, gone: Iterable[str]) -> int:
    """Let the jobs of owners that have ended wait again; return their number. Cancelled ones end."""
    count = 0
    with db.transaction() as sql:
        for owner in gone:
            sql.execute(
                "DELETE FROM requests WHERE job IN (SELECT key FROM jobs WHERE state = ? AND owner = ? "
                "AND cancelling)",
                (RUNNING, owner),
            )
            sql.execute(
                "UPDATE jobs SET state = ?, owner = NULL, ended_s = ?, bytes = 0, headers = '{}' "
                "WHERE state = ? AND owner = ? AND cancelling",
                (CANCELLED, db.now_s(), RUNNING, owner),
            )
            count += sql.execute(
                "UPDATE jobs SET state = ?, owner = NULL WHERE state = ? AND owner = ?",
                (QUEUED, RUNNING, owner),
            ).rowcount
    return count
