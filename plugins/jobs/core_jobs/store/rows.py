"""Reading jobs and results."""

from __future__ import annotations

import json
import sqlite3

from core_jobs.job import Item, Job, Result
from core_jobs.store.database import Database

_COLUMNS = (
    *("key", "id", "caller", "model", "version", "kind", "state", "total", "succeeded", "failed"),
    *(
        "bytes",
        "result_bytes",
        "created_s",
        "started_s",
        "ended_s",
        "deadline_s",
        "keep_s",
        "error",
    ),
)


def job_of(row: sqlite3.Row) -> Job:
    """Return the job in a row of the table `jobs`."""
    values = {name: row[name] for name in _COLUMNS}
    return Job(**values, headers=json.loads(row["headers"]), cancelling=bool(row["cancelling"]))


def find(db: Database, caller: str, id: str) -> Job | None:
    """Return the job of a caller with that id; None if the caller has none."""
    with db.reading() as sql:
        row = sql.execute("SELECT * FROM jobs WHERE id = ? AND caller = ?", (id, caller)).fetchone()
    return None if row is None else job_of(row)


def listed(db: Database, caller: str, state: str, before: int, most: int) -> list[Job]:
    """Return at most `most` jobs of a caller, the newest first.

    state    "" for any
    before   only jobs with a smaller key; 0 for all
    """
    wanted, values = "caller = ?", [caller]
    if state:
        wanted, values = f"{wanted} AND state = ?", [*values, state]
    with db.reading() as sql:
        rows = sql.execute(
            f"SELECT * FROM jobs WHERE {wanted} AND (? = 0 OR key < ?) ORDER BY key DESC LIMIT ?",
            (*values, before, before, most),
        ).fetchall()
    return [job_of(row) for row in rows]


def requests_after(db: Database, key: int, index: int, most: int, most_bytes: int) -> list[Item]:
    """Return the next requests of a job without a result, after one with that index, in order.

    most_bytes   of them together, but at least one request
    """
    found: list[Item] = []
    size = 0
    with db.reading() as sql:
        for row in sql.execute(
            "SELECT item, body FROM requests WHERE job = ? AND item > ? ORDER BY item LIMIT ?",
            (key, index, most),
        ):
            size += len(row["body"])
            if found and size > most_bytes:
                break
            found.append(Item(row["item"], bytes(row["body"])))
    return found


def results_after(db: Database, key: int, index: int, most_bytes: int) -> list[Result]:
    """Return the next results of a job after one with that index, in order.

    most_bytes   of them together, but at least one result
    """
    found: list[Result] = []
    size = 0
    with db.reading() as sql:
        for row in sql.execute(
            "SELECT * FROM results WHERE job = ? AND item > ? ORDER BY item", (key, index)
        ):
            size += len(row["body"]) + 64
            if found and size > most_bytes:
                break
            headers = json.loads(row["headers"]) if row["headers"] else {}
            found.append(Result(row["item"], row["status"], headers, bytes(row["body"])))
    return found
