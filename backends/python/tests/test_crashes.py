"""A model whose process dies, once or repeatedly, and the effects on its requests."""

import asyncio
import logging
import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from backend_python.entry import backend
from backend_python.server.backoff import Backoff
from backend_python.server.watch import Watch
from backend_python.system import PORTABLE

from core import CoreError
from core.telemetry.registry import registry

ONE = {"x": np.ones(1, np.float32)}
PID = """
    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor(
            "y", np.array([os.getpid()], np.float32))]) for _ in requests]
"""
SLEEPS = """
    def execute(self, requests):
        time.sleep(float(requests[0].inputs()[0].as_numpy()[0]))
        return [pb_utils.InferenceResponse([pb_utils.Tensor(
            "y", np.array([os.getpid()], np.float32))]) for _ in requests]
"""


async def until(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        await asyncio.sleep(0.01)


def metric(name):
    return {
        (name, *sample.labels.items()): sample.value
        for family in registry.families()
        if family.name == name
        for sample in family.samples
    }


async def test_a_child_that_dies_is_started_again_without_a_request(serve, children, caplog):
    model = await serve(PID)
    (first,) = children()

    os.kill(first, signal.SIGKILL)

    await until(lambda: children() not in ([], [first]))
    await until(lambda: model.chain.ready)
    assert "(signal 9, SIGKILL, as the system does when memory runs out)" in caplog.text


async def test_a_model_is_not_ready_while_it_has_no_child(serve, folder, children):
    model = await serve(
        """
    def initialize(self, args):
        while os.path.exists(os.path.join(pb_utils.get_model_dir(), "wait")):
            time.sleep(0.01)
    """
        + PID
    )
    assert model.chain.ready and await model.chain.check()
    (folder / "1" / "wait").touch()

    os.kill(children()[0], signal.SIGKILL)
    await until(lambda: not model.chain.ready)
    assert not await model.chain.check()
    assert list(metric("core_python_ready").values()) == [0]

    reply = model.ask(ONE)  # it waits for the next child
    (folder / "1" / "wait").unlink()
    await reply
    assert model.chain.ready
    assert list(metric("core_python_ready").values()) == [1]
    labels = (("model", "m"), ("version", "1"))
    assert metric("core_python_restarts") == {("core_python_restarts", *labels): 1}


async def test_the_metrics_of_a_model_go_with_it(serve):
    model = await serve(PID, "instance_group [ { count: 2 kind: KIND_CPU } ]")
    assert list(metric("core_python_ready").values()) == [2]

    await model.chain.close()

    assert metric("core_python_ready") == metric("core_python_restarts") == {}


async def test_requests_pass_by_an_instance_without_a_child(serve, folder, children):
    model = await serve(
        """
    def initialize(self, args):
        while os.path.exists(os.path.join(pb_utils.get_model_dir(), "wait")):
            time.sleep(0.01)
    """
        + PID,
        "instance_group [ { count: 2 kind: KIND_CPU } ]",
    )
    (folder / "1" / "wait").touch()
    dead, alive = sorted(children())
    os.kill(dead, signal.SIGKILL)
    await until(lambda: list(metric("core_python_ready").values()) == [1])

    answers = [await model.y(1) for _ in range(10)]
    assert answers == [[np.float32(alive)]] * 10
    assert model.chain.ready

    (folder / "1" / "wait").unlink()
    await until(lambda: list(metric("core_python_ready").values()) == [2])
    both = {(await model.y(1))[0] for _ in range(10)}
    assert len(both) == 2


async def test_requests_are_refused_while_the_next_try_is_far(
    serve, folder, children, caplog, monkeypatch
):
    monkeypatch.setattr("backend_python.server.backoff._FIRST_S", 1000)
    monkeypatch.setattr("backend_python.server.backoff._LONGEST_S", 1000)
    model = await serve(
        """
    def initialize(self, args):
        if os.path.exists(os.path.join(pb_utils.get_model_dir(), "broken")):
            raise RuntimeError("still broken")
    """
        + PID
    )
    (folder / "1" / "broken").touch()
    os.kill(children()[0], signal.SIGKILL)
    again = "'m_0' cannot start again, next try in 1000 s: RuntimeError: still broken"
    await until(lambda: again in caplog.text)

    with pytest.raises(CoreError, match="RuntimeError: still broken"):
        await model.ask(ONE)

    assert not model.chain.ready


async def test_closing_ends_a_child_that_still_initializes(serve, children):
    model = await serve("    def initialize(self, args):\n        time.sleep(self.seconds())\n"
        "    def seconds(self):\n"
        "        first = os.path.join(pb_utils.get_model_dir(), 'second')\n"
        "        if os.path.exists(first):\n"
        "            return 1000\n"
        "        open(first, 'w').close()\n"
        "        return 0\n" + PID)  # fmt: skip
    (first,) = children()
    os.kill(first, signal.SIGKILL)
    await until(lambda: children() not in ([], [first]))

    await asyncio.wait_for(model.chain.close(), 20)

    assert children() == []


def test_pauses_grow_until_a_child_has_worked():
    backoff = Backoff()
    assert [backoff.failed() for _ in range(5)] == [0, 0.1, 0.2, 0.4, 0.8]
    assert max(backoff.failed() for _ in range(100)) == 30

    backoff.worked()

    assert backoff.failed() == 0


@pytest.mark.parametrize("where", ["option", "parameter"])
async def test_an_execution_beyond_its_limit_ends_the_child(
    serve, children, monkeypatch, caplog, where
):
    more = ""
    if where == "option":
        monkeypatch.setattr(backend, "config", {"execute-timeout-seconds": "1"})
    else:
        more = 'parameters { key: "EXECUTE_TIMEOUT_SECONDS" value { string_value: "1" } }'
    model = await serve(SLEEPS, more)
    (first,) = children()
    behind = [model.ask({"x": np.zeros(1, np.float32)}) for _ in range(3)]

    with pytest.raises(CoreError, match="Stub process 'm_0' is not healthy"):
        await model.ask({"x": np.full(1, 1000, np.float32)})

    for reply in behind:
        await reply
    assert "'m_0' has not come back from execute within 1 seconds; it is killed" in caplog.text
    assert "when memory runs out" not in caplog.text  # the server has done it
    assert await model.y(0) != [np.float32(first)]


async def test_a_limit_that_is_no_number_fails_the_load(serve):
    more = 'parameters { key: "EXECUTE_TIMEOUT_SECONDS" value { string_value: "soon" } }'

    with pytest.raises(CoreError, match="EXECUTE_TIMEOUT_SECONDS is 'soon': expected a positive"):
        await serve(PID, more)


@pytest.mark.skipif(PORTABLE, reason="only /proc tells that a process is stopped")
async def test_a_process_that_was_stopped_is_ended(serve, children, monkeypatch, caplog):
    monkeypatch.setattr(backend, "config", {"stub-timeout-seconds": "3"})
    model = await serve(PID)
    os.kill(children()[0], signal.SIGSTOP)

    with pytest.raises(CoreError, match="Stub process 'm_0' is not healthy"):
        await model.ask(ONE)

    assert "'m_0' has been stopped by a signal for 3 seconds; it is killed" in caplog.text
    await model.y(1)


class FakeLoop:
    """An event loop with a time that the test sets, and with one timer."""

    def __init__(self):
        self.now, self.timer = 0.0, None

    def time(self):
        return self.now

    def call_later(self, seconds, look):
        self.timer = (self.now + seconds, look)
        return self

    def cancel(self):
        self.timer = None

    def pass_seconds(self, seconds):
        end = self.now + seconds
        while self.timer is not None and self.timer[0] <= end:
            (self.now, look), self.timer = self.timer, None
            look()
        self.now = end


@pytest.mark.parametrize("limit,told", [(0, []), (10, ["has not come back"])])
def test_only_a_limit_ends_a_long_execution(limit, told):
    loop, stuck = FakeLoop(), []
    Watch(loop, limit, 30, os.getpid(), lambda: 7, stuck.append)

    loop.pass_seconds(3600)

    assert [text[:17] for text in stuck] == told


def test_executions_that_follow_each_other_are_not_one_that_hangs():
    loop, stuck, numbers = FakeLoop(), [], iter(range(10**6))
    Watch(loop, 1, 30, os.getpid(), lambda: next(numbers), stuck.append)

    loop.pass_seconds(100)

    assert stuck == []


@pytest.mark.skipif(PORTABLE, reason="only Linux lets a process choose its OOM score")
async def test_memory_that_runs_out_ends_a_model_before_the_server(serve, children):
    await serve(PID)

    def score(pid):
        return int(Path(f"/proc/{pid}/oom_score_adj").read_text())

    (child,) = children()
    assert score(child) == min(1000, score("self") + 100)


async def test_the_log_has_the_end_of_a_process(serve, children, caplog):
    model = await serve(PID)
    os.kill(children()[0], signal.SIGSEGV)

    await until(lambda: "(signal 11, SIGSEGV)" in caplog.text)
    await model.y(1)


@pytest.mark.parametrize("mode", ["process", "thread", "inline"])
async def test_the_log_has_the_whole_traceback_of_an_exception(serve, folder, caplog, mode):
    model = await serve(
        """
        def execute(self, requests):
            try:
                {}["cause"]
            except KeyError as error:
                raise ValueError("effect") from error
        """,
        mode=mode,
    )
    with pytest.raises(CoreError) as error:
        await model.ask(ONE)
    assert "Failed to process the request(s) for model 'm_0', message: ValueError: effect" in str(
        error.value
    )

    (record,) = [each for each in caplog.records if "execute of 'm_0' failed" in each.getMessage()]
    assert record.getMessage() == "execute of 'm_0' failed: ValueError: effect"
    assert (record.pathname, record.lineno) == (str(folder / "1" / "model.py"), 13)
    assert "KeyError: 'cause'" in record.exc_text
    assert "The above exception was the direct cause" in record.exc_text
    assert "backend_python" not in record.exc_text


async def test_output_of_a_model_is_in_the_log_under_its_name(serve, caplog, capfd):
    caplog.set_level(logging.INFO, "core")
    model = await serve(
        """
        def initialize(self, args):
            print("x" * 200000)  # more than a pipe holds, while nobody serves

        def execute(self, requests):
            print("first", flush=True)
            subprocess.run(["sh", "-c", "echo second; echo third >&2"])
            print("10%\\r20%\\r", end="")
            print("last words", end="")
            sys.stdout.flush()
            os._exit(3)
        """
    )
    with pytest.raises(CoreError):
        await model.ask(ONE)
    await until(lambda: "exit status 3" in caplog.text)

    said = [(r.levelname, r.getMessage()) for r in caplog.records if r.pathname == "m_0"]
    whole = "".join(text for _, text in said if set(text) == {"x"})
    assert len(whole) == 200000
    short = [each for each in said if set(each[1]) != {"x"}]
    assert sorted(short) == sorted(
        [("INFO", text) for text in ("first", "second", "10%", "20%", "last words")]
        + [("WARNING", "third")]
    )
    assert capfd.readouterr().out == ""
    died = next(i for i, r in enumerate(caplog.records) if "exit status 3" in r.getMessage())
    spoke = next(i for i, r in enumerate(caplog.records) if r.getMessage() == "last words")
    assert spoke < died


READY = """
    def execute(self, requests):
        self.answer = eval(requests[0].inputs()[0].as_numpy()[0])
        return [pb_utils.InferenceResponse([requests[0].inputs()[0]])]

    answer = True
"""
SYNC = (
    READY
    + "\n    def is_ready(self):\n        return self.answer() if callable(self.answer) else self.answer"
)
ASYNC = SYNC.replace("def is_ready", "async def is_ready")


@pytest.mark.parametrize("source", [SYNC, ASYNC], ids=["sync", "async"])
@pytest.mark.parametrize("mode", ["process", "thread", "inline"])
async def test_a_model_reports_its_readiness(serve, mode, source, caplog):
    model = await serve(
        source, config='input [ { name: "x" data_type: TYPE_STRING dims: [ 1 ] } ] '
        'output [ { name: "x" data_type: TYPE_STRING dims: [ 1 ] } ]', mode=mode,
    )  # fmt: skip

    async def readiness(answer):
        await model.ask({"x": np.array([answer.encode()], object)})
        return await model.chain.check()

    assert await model.chain.check()
    assert not await readiness("False")
    assert model.chain.ready  # requests are taken nevertheless
    assert await readiness("True")
    assert not await readiness("3")
    assert "Expected a bool in the is_ready return, found type '<class 'int'>'." in caplog.text
    assert not await readiness("lambda: 1 / 0")
    assert "is_ready of 'm_0' failed: ZeroDivisionError: division by zero" in caplog.text


async def test_a_model_that_executes_is_as_ready_as_it_was(serve):
    model = await serve(SLEEPS + "\n    def is_ready(self):\n        return True")
    reply = model.ask({"x": np.full(1, 0.3, np.float32)})
    others = [model.chain.check() for _ in range(3)]

    assert await asyncio.gather(*others) == [True] * 3
    await reply


async def test_an_is_ready_that_does_not_answer_is_a_no(serve, monkeypatch, caplog):
    monkeypatch.setattr("backend_python.server.readiness.LIMIT_S", 0.1)
    model = await serve(PID + "\n    def is_ready(self):\n        time.sleep(1000)")

    assert await asyncio.gather(model.chain.check(), model.chain.check()) == [False, False]
    assert "is_ready of 'm_0' has not answered in 0.1 s" in caplog.text


async def test_no_is_ready_while_there_is_no_child(serve, folder, children):
    model = await serve(
        PID + "\n    def is_ready(self):\n        os._exit(1)",
    )

    assert not await model.chain.check()
