"""Folders that an earlier version has written."""

import sqlite3
from contextlib import closing

import pytest
from core_jobs.job import Origin
from core_jobs.store import rows
from core_jobs.store.database import FILE, Database

from core.errors import CoreError

from .test_store import Clock, submit

ORIGINS = """CREATE TABLE origins (
    job INTEGER NOT NULL, item INTEGER NOT NULL, file TEXT NOT NULL, source TEXT NOT NULL,
    form TEXT NOT NULL, input TEXT NOT NULL, PRIMARY KEY (job, item)
)"""


def opened(folder):
    return closing(Database(folder, 100 << 20, Clock()))


@pytest.fixture
def job(tmp_path):
    """A job in a folder of version 1, which has no table of files yet."""
    with opened(tmp_path) as database:
        found = submit(database, b"request")
    change(tmp_path, "DROP TABLE origins", "DROP TABLE files", "PRAGMA user_version = 1")
    return found


def change(folder, *statements):
    with closing(sqlite3.connect(folder / FILE)) as sql, sql:
        for each in statements:
            sql.execute(each)


@pytest.mark.parametrize("tables", [[], [ORIGINS]])
def test_a_folder_of_version_1_without_jobs_of_files_goes_on(job, tmp_path, tables):
    change(tmp_path, *tables)

    with opened(tmp_path) as database:
        assert rows.find(database, "a", job.id).total == 1
        files = submit(database, b"a", origins=[Origin("f", ":1", "", "x")])
    with opened(tmp_path) as database:
        (found,) = rows.files_of(database, files.key)
        assert found["file"] == "f"


def test_a_folder_of_version_1_with_jobs_of_files_is_refused(job, tmp_path):
    change(tmp_path, ORIGINS, "INSERT INTO origins VALUES (1, 0, 'a', 'a', '', '')")

    with pytest.raises(CoreError, match="has version 1 of the tables of jobs, this server knows 2"):
        opened(tmp_path)
