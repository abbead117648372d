"""The store in virtual time: claims, results exactly once, limits, expiry, a bounded folder."""

import pytest
from core_jobs.job import BATCH, DONE, FAILED, QUEUED, RUNNING, Origin, Result, Submission
from core_jobs.store import progress, rows, submitting, upkeep
from core_jobs.store.database import FILE, Database, FolderFull
from core_jobs.store.submitting import CallerLimits

from core.errors import CoreError, Exhausted

NO_LIMITS = CallerLimits(1000, 0)


class Clock:
    now_s = 1000.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def db(tmp_path, clock):
    database = Database(tmp_path, 100 << 20, clock)
    yield database
    database.close()


def submission(*bodies, caller="a", **more):
    given = {"digest": b"d", "keep_s": 60.0, **more}
    return Submission(caller, "m", -1, BATCH, list(bodies), **given)


def submit(db, *bodies, limits=NO_LIMITS, **more):
    return submitting.submit(db, submission(*bodies, **more), limits)[0]


def result(index, body=b"{}", status=200):
    return Result(index, status, {}, body)


def kept(db, job):
    return [(each.index, each.body) for each in rows.results_after(db, job.key, -1, 1 << 20)]


def left(db, job):
    return [each.index for each in rows.requests_after(db, job.key, -1, 100, 1 << 20)]


def test_a_result_is_kept_once(db):
    job = submit(db, b"0", b"1", b"2")
    progress.claim(db, "p", 1)

    assert progress.record(db, "p", job.key, [result(1, b"first")]) == 5
    progress.record(db, "p", job.key, [result(1, b"second"), result(2, b"x")])

    assert kept(db, job) == [(1, b"first"), (2, b"x")]
    assert left(db, job) == [0]
    found = rows.find(db, "a", job.id)
    assert (found.succeeded, found.failed, found.bytes, found.result_bytes) == (2, 0, 1, 6)


def test_what_is_left_waits_again_when_the_owner_is_gone(db):
    job = submit(db, b"0", b"1")
    progress.claim(db, "killed", 1)
    progress.record(db, "killed", job.key, [result(0)])

    assert progress.owners(db) == {"killed"}
    assert progress.release(db, ["killed"]) == 1
    assert progress.claim(db, "next", 1).id == job.id
    assert left(db, job) == [1]

    # A process that was only slow changes nothing any more.
    assert progress.record(db, "killed", job.key, [result(1, b"late")]) == 0
    assert progress.finish(db, "killed", job.key, DONE) is None
    progress.record(db, "next", job.key, [result(1)])
    assert progress.finish(db, "next", job.key, DONE).state == DONE
    assert kept(db, job) == [(0, b"{}"), (1, b"{}")]


def test_the_store_survives_a_new_process(tmp_path, clock):
    first = Database(tmp_path, 1 << 30, clock)
    job = submit(first, b"0")
    second = Database(tmp_path, 1 << 30, clock)

    assert second.changes() == second.changes()
    assert rows.find(second, "a", job.id).state == QUEUED
    before = second.changes()
    progress.claim(first, "p", 1)
    assert second.changes() != before
    first.close()
    second.close()


def test_jobs_run_in_order_and_callers_take_turns(db):
    first = submit(db, b"0", caller="a")
    submit(db, b"0", caller="a")
    other = submit(db, b"0", caller="b")

    assert progress.claim(db, "p", 2).id == first.id
    assert progress.claim(db, "p", 2).id == other.id
    assert progress.claim(db, "p", 2) is None


def test_a_job_without_a_success_has_failed(db):
    job = submit(db, b"0", b"1")
    progress.claim(db, "p", 1)
    errors = [result(0, b'{"error": "no input y"}', 400), result(1, b'{"error": "z"}', 500)]
    progress.record(db, "p", job.key, errors)

    ended = progress.finish(db, "p", job.key, DONE)
    assert (ended.state, ended.error) == (FAILED, "no input y")


def test_a_repeated_submission_is_the_same_job(db):
    first, is_new = submitting.submit(db, submission(b"0", idempotency_key="k"), NO_LIMITS)
    again, is_new_too = submitting.submit(db, submission(b"0", idempotency_key="k"), NO_LIMITS)
    other = submit(db, b"0", idempotency_key="k", caller="b")

    assert (is_new, is_new_too) == (True, False)
    assert first.id == again.id != other.id
    with pytest.raises(CoreError, match=f"belongs to job {first.id}"):
        submit(db, b"1", idempotency_key="k", digest=b"e")


def test_the_limits_of_a_caller(db):
    submit(db, b"0", limits=CallerLimits(1, 0))
    with pytest.raises(Exhausted, match="1 jobs wait or run, the limit is 1"):
        submit(db, b"0", limits=CallerLimits(1, 0))
    submit(db, b"0", caller="b", limits=CallerLimits(1, 0))
    with pytest.raises(Exhausted, match="keep 1 bytes and this one has 10, the limit is 10"):
        submit(db, b"0123456789", limits=CallerLimits(9, 10))


def test_ended_jobs_expire(db, clock):
    job, other = submit(db, b"0", keep_s=60.0), submit(db, b"0", keep_s=90.0)
    for each in (job, other):
        progress.claim(db, "p", 2)
        progress.record(db, "p", each.key, [result(0)])
        progress.finish(db, "p", each.key, DONE)

    clock.now_s += 59.9
    assert upkeep.expire(db) == 0
    clock.now_s += 0.2
    assert upkeep.expire(db) == 1
    assert rows.find(db, "a", job.id) is None
    assert kept(db, job) == []
    assert rows.find(db, "a", other.id).state == DONE
    clock.now_s += 60
    assert upkeep.expire(db) == 1
    assert upkeep.numbers(db).jobs == dict.fromkeys(
        ("queued", "running", "done", "failed", "cancelled"), 0
    )


def test_a_job_that_waits_beyond_its_deadline_fails(db, clock):
    job = submit(db, b"0", deadline_s=1010.0)
    assert upkeep.numbers(db).waiting_s == 0
    clock.now_s = 1011.0
    assert upkeep.numbers(db).waiting_s == 11
    assert upkeep.expire(db) == 1
    found = rows.find(db, "a", job.id)
    assert (found.state, found.error, found.bytes) == (FAILED, upkeep.LATE, 0)
    assert progress.claim(db, "p", 1) is None


def test_a_late_job_that_another_worker_claims_keeps_its_requests(db, tmp_path, clock, monkeypatch):
    job = submit(db, b"0", deadline_s=1010.0)
    clock.now_s = 1011.0
    other, begin = Database(tmp_path, 100 << 20, clock), db.transaction

    def claimed_before():
        progress.claim(other, "p", 1)
        return begin()

    monkeypatch.setattr(db, "transaction", claimed_before)
    assert upkeep.expire(db) == 0
    other.close()
    assert rows.find(db, "a", job.id).state == RUNNING
    assert left(db, job) == [0]


def test_the_upkeep_reads_only_jobs_that_have_expired(db):
    statements = []
    with db.reading() as sql:
        sql.set_trace_callback(statements.append)
        upkeep.expire(db)
        sql.set_trace_callback(None)
        (expiry,) = (each for each in statements if "keep_s" in each)
        plan = [row["detail"] for row in sql.execute(f"EXPLAIN QUERY PLAN {expiry}")]
    assert len(plan) == 1
    assert "SEARCH jobs USING" in plan[0]
    assert "INDEX jobs_expiry (<expr><?)" in plan[0]


def test_headers_are_kept_until_the_end_of_a_job(db, clock):
    def submitted(**more):
        return submit(db, b"0", headers={"Authorization": "secret"}, **more)

    finished, released, late = submitted(), submitted(), submitted(deadline_s=1001.0)
    assert progress.claim(db, "p", 9).headers == {"Authorization": "secret"}
    progress.finish(db, "p", finished.key, DONE)
    progress.claim(db, "q", 9)
    submitting.cancel(db, "a", released.id)
    progress.release(db, ["q"])
    clock.now_s = 1002.0
    upkeep.expire(db)
    cancelled = submitted()
    submitting.cancel(db, "a", cancelled.id)
    for job in (finished, released, late, cancelled):
        found = rows.find(db, "a", job.id)
        assert (found.has_ended, found.headers) == (True, {})


def test_a_running_job_that_is_cancelled_ends_with_its_owner(db):
    job = submit(db, b"0")
    progress.claim(db, "p", 1)
    assert submitting.cancel(db, "a", job.id).state == RUNNING
    assert progress.cancelled_of(db, "p") == [job.key]
    assert progress.release(db, ["p"]) == 0
    assert rows.find(db, "a", job.id).state == "cancelled"
    assert left(db, job) == []


def test_requests_and_results_have_the_file_that_they_are_from_until_the_job_is_deleted(db):
    of_a = [Origin("a.txt", f":{line}", ".txt", "") for line in (1, 2)]
    of_b = Origin("b.jpg", "", "", "x")
    job = submit(db, b"0", b"1", b"2", origins=[*of_a, of_b])
    progress.claim(db, "p", 1)
    progress.record(db, "p", job.key, [result(1), result(0, status=400)])

    (waits,) = rows.requests_after(db, job.key, -1, 9, 1 << 20)
    assert (waits.index, waits.origin) == (2, of_b)
    sources = [each.source for each in rows.results_after(db, job.key, -1, 1 << 20)]
    assert sources == ["a.txt:1", "a.txt:2"]
    assert rows.files_of(db, job.key) == [
        {"file": "a.txt", "requests": {"total": 2, "succeeded": 1, "failed": 1}},
        {"file": "b.jpg", "requests": {"total": 1, "succeeded": 0, "failed": 0}},
    ]
    assert rows.place_of_file(db, job.key, "b.jpg") == range(2, 3)
    assert rows.place_of_file(db, job.key, "c.jpg") is None

    progress.finish(db, "p", job.key, DONE)
    assert submitting.delete(db, "a", job.id)
    assert rows.files_of(db, job.key) == []


def test_the_counts_of_files_cost_the_same_for_few_and_for_many_requests(db):
    def steps_of(requests):
        half = requests // 2
        origins = [Origin("a", f":{line}", "", "") for line in range(half)]
        origins += [Origin("b", f":{line}", "", "") for line in range(requests - half)]
        job = submit(db, *[b"0"] * requests, origins=origins)
        progress.claim(db, "p", 1)
        progress.record(db, "p", job.key, [result(index) for index in range(half + 1)])
        progress.finish(db, "p", job.key, DONE)
        counted = []
        db._sql.set_progress_handler(lambda: counted.append(1), 1)
        found = rows.files_of(db, job.key)
        db._sql.set_progress_handler(None, 1)
        return len(counted), [each["requests"] for each in found]

    few, _ = steps_of(4)
    many, counts = steps_of(10_000)

    assert counts == [
        {"total": 5_000, "succeeded": 5_000, "failed": 0},
        {"total": 5_000, "succeeded": 1, "failed": 0},
    ]
    assert 0 < many <= 2 * few


def test_a_folder_with_other_tables_is_refused(tmp_path, clock):
    first = Database(tmp_path, 100 << 20, clock)
    first._sql.execute("PRAGMA user_version = 9")
    first.close()

    with pytest.raises(CoreError, match="has version 9 of the tables of jobs, this server knows 2"):
        Database(tmp_path, 100 << 20, clock)


def test_the_name_of_a_file_counts_once_and_in_bytes():
    def taken(name, requests):
        return submitting._bytes_of([Origin(name, ":1", "", "x")] * requests)

    assert taken("ä" * 9, 1) == taken("a" * 9, 1) + 9
    assert taken("a" * 200, 2) - taken("a" * 200, 1) < 100


def test_deleted_jobs_give_their_space_back(tmp_path, clock):
    database = Database(tmp_path, 100 << 20, clock)
    job = submit(database, *[bytes(1 << 20)] * 20, keep_s=1.0)
    assert (tmp_path / FILE).stat().st_size + (tmp_path / f"{FILE}-wal").stat().st_size > 20 << 20
    submitting.cancel(database, "a", job.id)
    clock.now_s += 2
    for _ in range(5):
        upkeep.expire(database)
    assert database.used_bytes() < 1 << 20
    database.close()
    assert (tmp_path / FILE).stat().st_size < 1 << 20


def test_the_folder_is_bounded(tmp_path, clock):
    database = Database(tmp_path, 2 << 20, clock)
    with pytest.raises(Exhausted, match="delete jobs"):
        submit(database, bytes(2 << 20))
    job = submit(database, bytes(1000), bytes(1000))
    progress.claim(database, "p", 1)
    progress.record(database, "p", job.key, [result(0, bytes(1 << 20))])
    with pytest.raises(FolderFull, match="no room: --jobs-max-bytes=2097152"):
        progress.record(database, "p", job.key, [result(1, bytes(1 << 20))])
    assert [index for index, _ in kept(database, job)] == [0]
    assert left(database, job) == [1]
    assert progress.finish(database, "p", job.key, FAILED, "full").error == "full"
    assert (tmp_path / FILE).stat().st_size <= 2 << 20
    database.close()


def test_a_store_that_cannot_be_read_is_named(db):
    db.close()
    with pytest.raises(CoreError, match=f"{FILE}' cannot be used: "):
        db.changes()


def test_a_file_of_something_else_is_named(tmp_path):
    (tmp_path / FILE).write_bytes(b"no database" * 100)
    with pytest.raises(CoreError, match=f"{FILE}' cannot be opened: file is not a database"):
        Database(tmp_path, 1 << 20)
