"""EXECUTION_MODE shared: models that live in one worker process."""

import asyncio
import gc
import logging
import os
import time
from pathlib import Path

import numpy as np
import pytest
from backend_python.server.shared import SharedWorker, worker
from backend_python.server.template import template

from core import CoreError
from core.telemetry.registry import registry

ONE = {"x": np.ones(1, np.float32)}
SHARED = "shared"
PID = """
    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor(
            "y", np.array([os.getpid()], np.float32))]) for _ in requests]
"""
SAYS = """
    def execute(self, requests):
        said = eval(requests[0].inputs()[0].as_numpy()[0])
        return [pb_utils.InferenceResponse([pb_utils.Tensor(
            "y", np.array([str(said).encode()], object))])]
"""
GROUP = 'parameters { key: "SHARED_WORKER" value { string_value: "%s" } }'


async def until(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        await asyncio.sleep(0.01)


def restarts():
    """Return the restarts of all models in the metrics."""
    return sum(
        sample.value
        for family in registry.families()
        if family.name == "core_python_restarts"
        for sample in family.samples
    )


async def said(model, code):
    """Return the value of an expression in the model's process."""
    answer = await model.ask({"x": np.array([code.encode()], object)})
    return answer.output("y").array[0].decode()


async def test_models_run_in_one_process_which_ends_with_the_last(serve, children, templates):
    a = await serve(PID, mode=SHARED, name="a")
    b = await serve(PID, "instance_group { count: 2 }", mode=SHARED, name="b")
    (process,) = children()
    assert {(await a.y(1))[0], (await b.y(1))[0], (await b.y(1))[0]} == {np.float32(process)}

    await a.chain.close()
    assert await b.y(1) == [np.float32(process)]

    await b.chain.close()
    assert children() == templates() == []


async def test_groups_have_workers_of_their_own(serve, children):
    models = [
        await serve(PID, GROUP % group, mode=SHARED, name=name)
        for name, group in (("a", "one"), ("b", "two"), ("c", "one"))
    ]

    a, b, c = [(await model.y(1))[0] for model in models]

    assert a == c != b
    assert len(children()) == 2


def test_servers_do_not_share_workers():
    one, other = object(), object()
    kept = worker(one, template, "w")

    assert worker(one, template, "w") is kept
    assert worker(other, template, "w") is not kept
    assert isinstance(kept, SharedWorker)


async def test_a_group_needs_the_mode(serve):
    with pytest.raises(CoreError, match="SHARED_WORKER is 'w', which needs"):
        await serve(PID, GROUP % "w", mode="thread")


async def test_a_worker_that_dies_is_replaced_with_all_its_models(serve, children, caplog):
    a = await serve(SAYS, mode=SHARED, name="a", datatype="BYTES")
    b = await serve(SAYS, mode=SHARED, name="b", datatype="BYTES")
    (first,) = children()

    with pytest.raises(CoreError, match="Stub process 'a_0' is not healthy"):
        await said(a, "os._exit(7)")

    await until(lambda: restarts() == 2)
    assert a.chain.ready and b.chain.ready
    (second,) = children()
    assert second != first
    assert await said(a, "os.getpid()") == await said(b, "os.getpid()") == str(second)
    for name in ("a_0", "b_0"):
        assert f"Stub process '{name}' is not healthy. (exit status 7)" in caplog.messages


async def test_an_execution_that_takes_too_long_ends_the_worker(serve, children, caplog):
    limit = 'parameters { key: "EXECUTE_TIMEOUT_SECONDS" value { string_value: "1" } }'
    a = await serve(SAYS, limit, mode=SHARED, name="a", datatype="BYTES")
    b = await serve(SAYS, mode=SHARED, name="b", datatype="BYTES")
    (first,) = children()

    with pytest.raises(CoreError, match="is not healthy"):
        await said(a, "threading.Event().wait()")

    await until(lambda: restarts() == 2)
    (second,) = children()
    assert second != first
    assert await said(b, "os.getpid()") == str(second)
    why = "signal 9, SIGKILL of the server: 'a_0' has not come back from execute within 1 seconds"
    for name in ("a_0", "b_0"):
        assert f"Stub process '{name}' is not healthy. ({why})" in caplog.messages


async def test_a_model_that_is_unloaded_finalizes_and_the_others_go_on(serve, folder, children):
    a = await serve(
        PID
        + """
    def initialize(self, args):
        self.marker = os.path.join(os.path.dirname(pb_utils.get_model_dir()), "finalized")

    def finalize(self):
        open(self.marker, "w").close()
""",
        mode=SHARED,
        name="a",
    )
    b = await serve(SAYS, mode=SHARED, name="b", datatype="BYTES")

    await a.chain.close()

    assert (folder / "finalized").exists()
    modules = "[name for name in sys.modules if name.startswith('python_model_a_')]"
    assert await said(b, modules) == "[]"
    # The thread of the other ends behind its last word.
    while await said(b, "threading.active_count()") != "2":
        await asyncio.sleep(0.01)
    names = "[thread.name for thread in threading.enumerate()]"
    assert await said(b, names) == "['MainThread', 'model']"


async def test_a_model_that_is_unloaded_during_an_execution_ends_after_it(serve, folder):
    a = await serve(SAYS, mode=SHARED, name="a", datatype="BYTES")
    b = await serve(SAYS, mode=SHARED, name="b", datatype="BYTES")
    process = await said(b, "os.getpid()")
    waits = (
        f"[open({str(folder / 'begun')!r}, 'w').close()] + [time.sleep(0.01) for _ in iter("
        f"lambda: os.path.exists({str(folder / 'end')!r}), True)]"
    )
    asking = asyncio.create_task(said(a, waits))
    await until((folder / "begun").exists)

    await a.chain.close()

    with pytest.raises(CoreError, match="is not healthy"):
        await asking
    assert await said(b, "threading.active_count()") == "3"
    (folder / "end").touch()
    while await said(b, "threading.active_count()") != "2":
        await asyncio.sleep(0.01)
    assert await said(b, "os.getpid()") == process


async def test_a_model_that_has_forked_ends_before_its_forks(serve, children, caplog):
    forks = """
    def initialize(self, args):
        self.read, write = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            os.close(write)
            os.read(self.read, 1)  # until the worker has ended
            os._exit(0)
"""
    a = await serve(SAYS + forks, mode=SHARED, name="a", datatype="BYTES")
    b = await serve(SAYS, mode=SHARED, name="b", datatype="BYTES")

    await a.chain.close()

    assert await said(b, "os.getpid()") == str(children()[0])
    assert "does not end" not in caplog.text


async def test_a_model_whose_initialize_fails_does_not_affect_others(serve, children):
    a = await serve(PID, mode=SHARED, name="a")

    with pytest.raises(CoreError, match="RuntimeError: no"):
        await serve(
            "    def initialize(self, args):\n        raise RuntimeError('no')\n" + PID,
            mode=SHARED,
            name="b",
        )

    assert await a.y(1) == [np.float32(children()[0])]


async def test_loading_and_unloading_leaves_no_descriptor_and_no_thread(serve, children):
    stays = await serve(SAYS, mode=SHARED, name="stays", datatype="BYTES")
    coroutine = """
    async def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            sender.send(pb_utils.InferenceResponse([
                pb_utils.Tensor("y", request.inputs()[0].as_numpy())]), flags=1)
"""

    async def held():
        """Return how many descriptors worker and server have, once no thread of the other model is left."""
        # The search for lost senders is of the process, and ends by itself.
        count = "sum(each.name != 'core-unanswered' for each in threading.enumerate())"
        while await said(stays, count) != "2":
            await asyncio.sleep(0.01)
        await said(stays, "__import__('gc').collect()")
        gc.collect()
        theirs = await said(stays, "len(os.listdir('/proc/self/fd'))")
        return int(theirs), len(os.listdir("/proc/self/fd"))

    async def load_and_unload():
        other = await serve(coroutine, mode=SHARED, name="other", decoupled=True)
        assert [r async for r in other.ask(ONE)]
        await other.chain.close()

    for _ in range(2):  # the first one imports
        await load_and_unload()
    theirs, ours = await held()
    loads = 4
    for _ in range(loads):
        await load_and_unload()

    # Not one for each load; what other tests have left in this process comes and goes.
    end = time.monotonic() + 10
    while True:
        theirs_later, ours_later = await held()
        if theirs_later <= theirs and ours_later < ours + loads:
            break
        assert time.monotonic() < end, (
            f"worker: {theirs} → {theirs_later}; server: {ours} → {ours_later}"
        )
        await asyncio.sleep(0.1)


async def test_every_instance_keeps_to_its_thread(serve):
    model = await serve(
        """
    def initialize(self, args):
        self.local = threading.local()
        self.local.value = 1
        self.thread = threading.get_ident()

    def execute(self, requests):
        self.local.value += 1
        same = self.thread == threading.get_ident()
        return [pb_utils.InferenceResponse([pb_utils.Tensor(
            "y", np.array([same, self.local.value], np.float32))]) for _ in requests]
""",
        mode=SHARED,
    )

    assert [await model.y(1) for _ in range(2)] == [[1, 2], [1, 3]]


async def test_output_of_models_is_logged_under_their_names_also_from_threads(serve, caplog):
    caplog.set_level(logging.INFO, "core")
    talks = """
    def execute(self, requests):
        def say():
            print("from a thread of", self.name)
            pb_utils.Logger.log_info(f"logged by {self.name}")
        thread = threading.Thread(target=say)
        thread.start()
        thread.join()
        print("an error of", self.name, file=sys.stderr)
        os.write(1, b"beside Python\\n")
        return [pb_utils.InferenceResponse([pb_utils.Tensor(
            "y", np.ones(1, np.float32))]) for _ in requests]

    def initialize(self, args):
        self.name = args["model_name"]
"""
    models = [await serve(talks, mode=SHARED, name=name) for name in ("a", "b")]
    for model in models:
        await model.y(1)
        await model.chain.close()

    lines = {(record.pathname, record.getMessage()) for record in caplog.records}
    for name in ("a", "b"):
        assert (f"{name}_0", f"from a thread of {name}") in lines
        assert (f"{name}_0", f"an error of {name}") in lines
    assert ("shared", "beside Python") in lines
    assert {"logged by a", "logged by b"} <= {message for _, message in lines}


async def test_many_models_take_a_fraction_of_the_memory(serve, children):
    async def memory(mode):
        model = await serve(PID, "instance_group [ { count: 20 kind: KIND_CPU } ]", mode=mode)
        for _ in range(20):
            await model.y(1)
        taken = sum(proportional_bytes(pid) for pid in children())
        await model.chain.close()
        return taken

    assert await memory(SHARED) * 3 < await memory("process")


def proportional_bytes(pid):
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"no Pss of process {pid}")
