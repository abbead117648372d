"""The tables of the store."""

from __future__ import annotations

import sqlite3

from core.errors import invalid

VERSION = 2

# A request leaves its table when its result enters the other one, in one transaction: what is in `requests`
# is what is left to do, also after a process was killed.
_TABLES = (
    """CREATE TABLE IF NOT EXISTS jobs (
        key INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        caller TEXT NOT NULL,
        model TEXT NOT NULL,
        version INTEGER NOT NULL,
        kind TEXT NOT NULL,
        headers TEXT NOT NULL,
        state TEXT NOT NULL,
        owner TEXT,
        cancelling INTEGER NOT NULL DEFAULT 0,
        total INTEGER NOT NULL,
        succeeded INTEGER NOT NULL DEFAULT 0,
        failed INTEGER NOT NULL DEFAULT 0,
        bytes INTEGER NOT NULL,
        result_bytes INTEGER NOT NULL DEFAULT 0,
        idempotency_key TEXT,
        digest BLOB NOT NULL,
        created_s REAL NOT NULL,
        started_s REAL,
        ended_s REAL,
        deadline_s REAL,
        keep_s REAL NOT NULL,
        error TEXT NOT NULL DEFAULT ''
    )""",
    "CREATE INDEX IF NOT EXISTS jobs_state ON jobs (state, caller)",
    "CREATE INDEX IF NOT EXISTS jobs_caller ON jobs (caller, key)",
    """CREATE INDEX IF NOT EXISTS jobs_expiry ON jobs (ended_s + keep_s)
        WHERE ended_s IS NOT NULL""",
    """CREATE UNIQUE INDEX IF NOT EXISTS jobs_idempotency ON jobs (caller, idempotency_key)
        WHERE idempotency_key IS NOT NULL""",
    """CREATE TABLE IF NOT EXISTS requests (
        job INTEGER NOT NULL, item INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (job, item)
    )""",
    """CREATE TABLE IF NOT EXISTS results (
        job INTEGER NOT NULL, item INTEGER NOT NULL, status INTEGER NOT NULL, headers TEXT NOT NULL,
        body BLOB NOT NULL, PRIMARY KEY (job, item)
    )""",
    # Of jobs of files only. The requests of a file follow each other, from the item `first` on.
    """CREATE TABLE IF NOT EXISTS files (
        job INTEGER NOT NULL, number INTEGER NOT NULL, name TEXT NOT NULL, form TEXT NOT NULL,
        input TEXT NOT NULL, first INTEGER NOT NULL, total INTEGER NOT NULL,
        succeeded INTEGER NOT NULL DEFAULT 0, failed INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (job, number)
    )""",
    """CREATE TABLE IF NOT EXISTS origins (
        job INTEGER NOT NULL, item INTEGER NOT NULL, file INTEGER NOT NULL, place TEXT NOT NULL,
        PRIMARY KEY (job, item)
    )""",
)


def create(sql: sqlite3.Connection, where: str) -> None:
    """Create the tables that are missing. Raises CoreError(INVALID) for a file of another version.

    A file of version 1 without jobs of files becomes one of this version: only their table has changed.
    """
    found = sql.execute("PRAGMA user_version").fetchone()[0]
    if found == 1 and not _has_origins(sql):
        sql.execute("DROP TABLE IF EXISTS origins")
        found = 0
    if found not in (0, VERSION):
        raise invalid(
            f"'{where}' has version {found} of the tables of jobs, this server knows {VERSION}: name another "
            "folder with --jobs-folder, or use the version of core that has written it"
        )
    for statement in _TABLES:
        sql.execute(statement)
    sql.execute(f"PRAGMA user_version = {VERSION}")


def _has_origins(sql: sqlite3.Connection) -> bool:
    tables = sql.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    if "origins" not in [name for (name,) in tables]:
        return False
    return sql.execute("SELECT 1 FROM origins LIMIT 1").fetchone() is not None
