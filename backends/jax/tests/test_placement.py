"""Where functions run: on which thread, and when on the event loop."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from backend_jax.instance import JaxInstance

X = np.array([[1, 2, 3], [4, 5, 6]], np.float32)


def doubled(x):
    return {"y": x + x}


@pytest.fixture
def opened(monkeypatch):
    """The instances that were opened."""
    found = []
    actual = JaxInstance.open
    monkeypatch.setattr(JaxInstance, "open", lambda self: found.append(self) or actual(self))
    return found


@pytest.mark.parametrize(
    ("config", "shape", "placement"),
    [
        ("max_batch_size: 4", "b, 3", "auto"),
        ("", "2, 3", "auto"),
        ("", "n, m", "thread"),
        (
            "max_batch_size: 4 parameters { key: 'shapes' value { string_value: '2' } }",
            "b, 3",
            "thread",
        ),
    ],
)
def test_only_functions_that_no_request_compiles_may_run_on_the_loop(
    serve, opened, config, shape, placement
):
    model = serve(doubled, f'backend: "jax" {config}', x=("float32", shape))

    assert model(x=X)["y"].tolist() == (2 * X).tolist()
    assert [each.placement for each in opened] == [placement]


def test_another_thread_than_that_of_the_load_may_run_a_function(serve, monkeypatch):
    threads = []
    actual = JaxInstance.execute
    monkeypatch.setattr(JaxInstance, "placement", "inline")
    monkeypatch.setattr(
        JaxInstance,
        "execute",
        lambda self, batch: threads.append(threading.current_thread().name) or actual(self, batch),
    )
    model = serve(doubled, 'backend: "jax" max_batch_size: 4', x=("float32", "b, 3"))

    answers = [model(x=X * number)["y"] for number in range(5)]

    assert [each.tolist() for each in answers] == [(2 * X * n).tolist() for n in range(5)]
    assert threads and not any(each.startswith("m") for each in threads)


# Steps too small to be shared among threads: whichever thread runs them has the CPU time. JAX always runs
# much shorter functions on the thread that calls them.
RUN = """
import time
import backend_jax, jax, numpy as np

x = np.ones(4096, np.float32)
step = lambda _, y: jax.numpy.sin(y) + 0.001
run = jax.jit(lambda x: jax.lax.fori_loop(0, 2000, step, x)).lower(x).compile()
begin, begin_all = time.thread_time(), time.process_time()
np.asarray(run(x))
print((time.thread_time() - begin) / (time.process_time() - begin_all))
"""


@pytest.mark.parametrize(("asynchronous", "here"), [(None, True), ("true", False)])
def test_runs_stay_on_the_calling_thread_unless_the_environment_says_otherwise(asynchronous, here):
    environment = {k: v for k, v in os.environ.items() if k != "JAX_CPU_ENABLE_ASYNC_DISPATCH"}
    if asynchronous:
        environment["JAX_CPU_ENABLE_ASYNC_DISPATCH"] = asynchronous
    done = subprocess.run(
        [sys.executable, "-c", RUN], env=environment, capture_output=True, text=True, timeout=100
    )

    assert done.returncode == 0, done.stderr
    assert (float(done.stdout) > 0.5) is here
