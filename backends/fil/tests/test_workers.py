"""Threads that share large batches."""

import threading

import numpy as np
import pytest
from backend_fil import workers
from backend_fil.workers import Workers, threads_by_default


@pytest.fixture
def pool():
    made = Workers(3)
    yield made
    made.close()


@pytest.mark.parametrize("rows", [16, 17, 23, 24, 25, 1000])
def test_every_row_is_processed_once(pool, rows):
    done = np.zeros(rows, int)

    def work(start, stop):
        done[start:stop] += 1

    pool.share(rows, 1e9, work)

    assert (done == 1).all()


def test_a_small_batch_runs_on_the_calling_thread(pool):
    threads = []

    pool.share(100, 10.0, lambda start, stop: threads.append(threading.current_thread()))

    assert threads == [threading.current_thread()]


def test_an_error_of_a_thread_reaches_the_caller(pool):
    def work(start, stop):
        if start:
            raise ValueError("of another thread")

    with pytest.raises(ValueError, match="of another thread"):
        pool.share(100, 1e9, work)


def test_one_core_is_left_to_the_server(monkeypatch):
    monkeypatch.setattr(workers.platform, "cores", lambda: set(range(4)))

    assert threads_by_default(frozenset()) == 3
    assert threads_by_default(frozenset({0, 1})) == 2


def test_threads_do_not_change_an_answer(serve, forests, monkeypatch):
    monkeypatch.setattr(workers, "_SHARE", 100)
    rows, labels = forests.tumours()
    model = forests.xgboost(rows, labels, objective="binary:logistic")
    shap = 'output [{ name: "output__0" }, { name: "treeshap_output" }]'

    found = serve(model, shap, predict_proba="true", cpu_nthread="4")(
        rows, ("output__0", "treeshap_output")
    )

    np.testing.assert_allclose(found["output__0"][:, 1], model.inplace_predict(rows), rtol=1e-5)
    assert any(thread.name.startswith("fil") for thread in threading.enumerate())
