"""Upkeep of the store: deadlines, expiry, and the numbers for metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from core_jobs.job import FAILED, QUEUED, STATES
from core_jobs.store.database import Database
from core_jobs.store.submitting import remove

LATE = "its deadline has passed"
_MOST = 100  # jobs that one call deletes: other workers write meanwhile


@dataclass(frozen=True)
class Numbers:
    """What the metrics show.

    jobs     state → number of jobs
    waiting_s   age of the oldest job that waits; 0 if none does
    bytes    that the store uses
    """

    jobs: Mapping[str, int] = field(default_factory=dict)
    waiting_s: float = 0.0
    bytes: int = 0


def expire(db: Database) -> int:
    """End the waiting jobs whose deadline has passed, and delete the ended ones whose time is over.

    Return the number of jobs that it has ended or deleted. The space is given back to the disk in parts.
    """
    now_s = db.now_s()
    with db.reading() as sql:
        late = [
            row["key"]
            for row in sql.execute(
                "SELECT key FROM jobs WHERE state = ? AND deadline_s <= ?", (QUEUED, now_s)
            )
        ]
        over = [
            row["key"]
            for row in sql.execute(
                "SELECT key FROM jobs WHERE ended_s IS NOT NULL AND ended_s + keep_s <= ? "
                "ORDER BY ended_s + keep_s LIMIT ?",
                (now_s, _MOST),
            )
        ]
    ended = 0
    if late or over:
        with db.transaction() as sql:
            # Another worker may have claimed a job since it was found late.
            sql.executemany(
                "DELETE FROM requests WHERE job IN (SELECT key FROM jobs WHERE key = ? AND state = ?)",
                [(key, QUEUED) for key in late],
            )
            ended = sql.executemany(
                "UPDATE jobs SET state = ?, error = ?, ended_s = ?, bytes = 0, headers = '{}' "
                "WHERE key = ? AND state = ?",
                [(FAILED, LATE, now_s, key, QUEUED) for key in late],
            ).rowcount
            remove(sql, over)
    db.shrink()
    return max(0, ended) + len(over)


def numbers(db: Database) -> Numbers:
    """Return the numbers for metrics."""
    with db.reading() as sql:
        counts = dict.fromkeys(STATES, 0)
        for row in sql.execute("SELECT state, count(*) AS count FROM jobs GROUP BY state"):
            counts[row["state"]] = row["count"]
        oldest = sql.execute(
            "SELECT min(created_s) AS at FROM jobs WHERE state = ?", (QUEUED,)
        ).fetchone()["at"]
        used_bytes = db.used_bytes()
    waiting_s = 0.0 if oldest is None else max(0.0, db.now_s() - oldest)
    return Numbers(counts, waiting_s, used_bytes)
