"""Reading jobs and results."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from typing import Any

from core_jobs.job import Item, Job, Origin, Result
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


def find(db: Database, caller: str | None, id: str) -> Job | None:
    """Return the job with that id of a caller, or of any for None; None if there is none."""
    with db.reading() as sql:
        row = one(sql, caller, id)
    return None if row is None else job_of(row)


def one(sql: sqlite3.Connection, caller: str | None, id: str) -> sqlite3.Row | None:
    """Return the row of the job with that id of a caller, or of any for None; None if there is none."""
    found: sqlite3.Row | None = sql.execute(
        "SELECT * FROM jobs WHERE id = ? AND (? IS NULL OR caller = ?)", (id, caller, caller)
    ).fetchone()
    return found


@dataclass(frozen=True)
class Wanted:
    """Which jobs to list: of a caller, a model, a state. None or "" for any."""

    caller: str | None
    model: str = ""
    state: str = ""


def listed(db: Database, wanted: Wanted, before: int, most: int) -> list[Job]:
    """Return at most `most` jobs, the newest first.

    before   only jobs with a smaller key; 0 for all
    """
    fields = {"caller": wanted.caller, "model": wanted.model or None, "state": wanted.state or None}
    given = {name: value for name, value in fields.items() if value is not None}
    conditions = "".join(f"{name} = ? AND " for name in given)
    with db.reading() as sql:
        rows = sql.execute(
            f"SELECT * FROM jobs WHERE {conditions}(? = 0 OR key < ?) ORDER BY key DESC LIMIT ?",
            (*given.values(), before, before, most),
        ).fetchall()
    return [job_of(row) for row in rows]


def callers(db: Database) -> list[dict[str, Any]]:
    """Return an entry for each caller: the number of its jobs by state, and their bytes."""
    with db.reading() as sql:
        rows = sql.execute(
            "SELECT caller, state, COUNT(*) AS jobs, SUM(bytes) AS bytes, SUM(result_bytes) AS result_bytes "
            "FROM jobs GROUP BY caller, state ORDER BY caller"
        ).fetchall()
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        nothing = {"caller": row["caller"], "jobs": {}, "bytes": 0, "result_bytes": 0}
        entry = found.setdefault(row["caller"], nothing)
        entry["jobs"][row["state"]] = row["jobs"]
        entry["bytes"] += row["bytes"]
        entry["result_bytes"] += row["result_bytes"]
    return list(found.values())


def requests_after(db: Database, key: int, index: int, most: int, most_bytes: int) -> list[Item]:
    """Return the next requests of a job without a result, after one with that index, in order.

    most_bytes   of them together, but at least one request
    """
    found: list[Item] = []
    size = 0
    with db.reading() as sql:
        for row in sql.execute(
            "SELECT item, body, name, place, form, input FROM requests LEFT JOIN origins USING (job, item) "
            "LEFT JOIN files ON files.job = requests.job AND number = file "
            "WHERE requests.job = ? AND item > ? ORDER BY item LIMIT ?",
            (key, index, most),
        ):
            size += len(row["body"])
            if found and size > most_bytes:
                break
            found.append(Item(row["item"], bytes(row["body"]), _origin_of(row)))
    return found


def results_after(db: Database, key: int, index: int, most_bytes: int) -> list[Result]:
    """Return the next results of a job after one with that index, in order.

    most_bytes   of them together, but at least one result
    """
    found: list[Result] = []
    size = 0
    with db.reading() as sql:
        for row in sql.execute(
            "SELECT item, status, headers, body, name || place AS source FROM results "
            "LEFT JOIN origins USING (job, item) "
            "LEFT JOIN files ON files.job = results.job AND number = file "
            "WHERE results.job = ? AND item > ? ORDER BY item",
            (key, index),
        ):
            size += len(row["body"]) + 64
            if found and size > most_bytes:
                break
            headers = json.loads(row["headers"]) if row["headers"] else {}
            source = row["source"] or ""
            found.append(Result(row["item"], row["status"], headers, bytes(row["body"]), source))
    return found


def _origin_of(row: sqlite3.Row) -> Origin | None:
    if row["name"] is None:
        return None
    return Origin(row["name"], row["place"], row["form"], row["input"])


def files_of(db: Database, key: int) -> list[dict[str, Any]]:
    """Return the files of a job in their order: the requests of each, and how many have a result."""
    with db.reading() as sql:
        found = sql.execute(
            "SELECT name, total, succeeded, failed FROM files WHERE job = ? ORDER BY number", (key,)
        ).fetchall()
    counts = ("total", "succeeded", "failed")
    return [
        {"file": row["name"], "requests": {name: row[name] for name in counts}} for row in found
    ]


def place_of_file(db: Database, key: int, file: str) -> range | None:
    """Return the indexes of the requests of a file; None if the job has no such file."""
    with db.reading() as sql:
        row = sql.execute(
            "SELECT first, total FROM files WHERE job = ? AND name = ?", (key, file)
        ).fetchone()
    return None if row is None else range(row["first"], row["first"] + row["total"])
