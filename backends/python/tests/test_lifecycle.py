"""A model's child: start, initialize, finalize, and no leftovers."""

import asyncio
import gc
import logging
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from backend_python.system import PORTABLE

from core import CoreError, Kind

PID = """
    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor(
            "y", np.array([os.getpid()], np.float32))]) for _ in requests]
"""


async def until(condition, seconds=10):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        await asyncio.sleep(0.01)


async def test_a_missing_file_is_named_with_the_existing_ones(serve, folder, loaded):
    (folder / "1").mkdir(parents=True)
    (folder / "1" / "mine.py").write_text("")

    with pytest.raises(CoreError) as error:
        loaded()

    assert error.value.kind is Kind.INVALID
    file = folder / "1" / "model.py"
    assert error.value.message.startswith(
        f"Python model file not found in '{file}'; the folder has mine.py."
    )


async def test_default_model_filename_is_respected(serve, folder):
    more = 'default_model_filename: "mine.py"'
    (folder / "1").mkdir(parents=True)
    source = (
        "import numpy as np\nimport triton_python_backend_utils as pb_utils\n"
        "class TritonPythonModel:\n"
        "    def execute(self, requests):\n"
        "        return [pb_utils.InferenceResponse([pb_utils.Tensor("
        "'y', np.ones(1, np.float32))])]\n"
    )
    (folder / "1" / "mine.py").write_text(source)
    model = await serve("raise RuntimeError('the other file')", more)

    assert await model.y(1) == [1]


@pytest.mark.parametrize("mode", ["process", "thread", "inline"])
@pytest.mark.parametrize(
    "source,text",
    [
        (
            "def initialize(self, args):\n    raise RuntimeError('refuses')",
            "RuntimeError: refuses\n\nAt:\n  {file}(9): initialize\n",
        ),
        ("TritonPythonModel = 3", "TypeError: 'int' object is not callable"),
        ("import no_such # TritonPythonModel", "ModuleNotFoundError: No module named 'no_such'"),
        ("class TritonPythonModel\n", "SyntaxError: expected ':' (model.py, line 1)"),
        ("# no TritonPythonModel", "AttributeError: module '"),
    ],
)
async def test_a_model_that_cannot_start_fails_its_load_with_its_own_text(
    serve, folder, source, text, mode, children
):
    with pytest.raises(CoreError) as error:
        await serve(source, mode=mode)

    file = folder / "1" / "model.py"
    assert error.value.message.startswith(text.format(file=file))
    assert "concurrent" not in error.value.message  # nothing of the thread that it was to run on
    assert children() == []


async def test_exit_in_initialize_is_an_error_like_others(serve, children):
    with pytest.raises(CoreError, match="SystemExit: 3"):
        await serve("def initialize(self, args): sys.exit(3)")

    assert children() == []


async def test_death_in_initialize_fails_the_load(serve, children):
    with pytest.raises(CoreError) as error:
        await serve("def initialize(self, args): os._exit(3)")

    assert error.value.message == "Stub process 'm_0' is not healthy."
    assert children() == []


async def test_tensors_that_are_neither_forced_nor_not_are_refused(serve):
    force = "FORCE_CPU_ONLY_INPUT_TENSORS"
    more = f'parameters {{ key: "{force}" value {{ string_value: "maybe" }} }}'

    with pytest.raises(CoreError, match=f"parameter {force} is 'maybe', expected yes or no"):
        await serve("def execute(self, requests): pass", more)


async def test_an_unknown_mode_is_refused(serve):
    with pytest.raises(CoreError, match="EXECUTION_MODE is 'fiber', expected one of process,"):
        await serve(PID, mode="fiber")


async def test_finalize_is_called_when_the_model_closes(serve, folder, children, caplog):
    model = await serve(
        PID
        + """
    def finalize(self):
        open(os.path.join(pb_utils.get_model_dir(), "finalized"), "w").close()
        raise ValueError("in finalize")
        """
    )
    await model.y(1)

    await model.chain.close()

    assert (folder / "1" / "finalized").exists()
    assert "finalize of 'm_0' failed: ValueError: in finalize" in caplog.text
    assert children() == []


async def test_a_finalize_that_never_ends_is_ended(serve, children, monkeypatch, caplog):
    from backend_python.entry import backend

    monkeypatch.setattr(backend, "config", {"stub-timeout-seconds": "3"})
    model = await serve(PID + "\n    def finalize(self):\n        time.sleep(1000)")
    await model.y(1)

    start = time.monotonic()
    await model.chain.close()

    assert 2.5 < time.monotonic() - start < 6
    assert "does not end" in caplog.text
    assert children() == []


async def test_closing_does_not_wait_for_a_running_execute(serve, children):
    model = await serve("def execute(self, requests): time.sleep(1000)")
    reply = model.ask({"x": np.ones(1, np.float32)})
    await asyncio.sleep(0.3)

    start = time.monotonic()
    await model.chain.close()

    assert time.monotonic() - start < 3
    with pytest.raises(CoreError):
        await reply
    assert children() == []


async def test_signals_of_the_terminal_do_not_end_a_child(serve, children):
    model = await serve(PID)
    (pid,) = children()
    before = await model.y(1)

    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(pid, number)
    await asyncio.sleep(0.1)

    assert await model.y(1) == before


async def test_programs_and_forks_of_a_model_get_ordinary_signals(serve):
    model = await serve(
        """
    def execute(self, requests):
        ended = []
        program = subprocess.Popen(["sleep", "100"])
        program.terminate()
        ended.append(program.wait())
        pid = os.fork()
        if pid == 0:
            time.sleep(100)
            os._exit(0)
        time.sleep(0.1)
        os.kill(pid, signal.SIGTERM)
        ended.append(-os.waitpid(pid, 0)[1])
        return [pb_utils.InferenceResponse([pb_utils.Tensor("y", np.array(ended, np.float32))])]
    """
    )
    assert await model.y(1) == [-signal.SIGTERM, -signal.SIGTERM]


@pytest.mark.parametrize(
    "work,mode",
    [
        ("pass", "process"),
        ("time.sleep(1000)", "process"),
        ("[0 for _ in iter(int, 1)]", "process"),
        ("pass", "shared"),
        ("[0 for _ in iter(int, 1)]", "shared"),
    ],
)
def test_a_server_that_is_killed_leaves_no_child_and_no_template(folder, work, mode):
    tests = Path(__file__).parent
    script = f"""
import asyncio, pathlib, sys
import importlib.util
spec = importlib.util.spec_from_file_location("support", {str(tests / "conftest.py")!r})
support = importlib.util.module_from_spec(spec)
spec.loader.exec_module(support)
import numpy as np
from core import config as configuration
from core.pipeline import ChainServices, open_chain

async def main():
    folder = pathlib.Path({str(folder)!r})
    support.write_model(folder, support.class_of('''
def execute(self, requests):
    {work}
'''))
    mode = 'parameters {{ key: "EXECUTION_MODE" value {{ string_value: "{mode}" }} }}'
    model = support.loaded_model(folder, support.x_and_y() + mode)
    signature = configuration.signature_of(model.config, folder, 1)
    chain = await open_chain(model, signature, ChainServices(asyncio.get_running_loop()))
    support.Served(model, chain).ask({{"x": np.ones(1, np.float32)}})
    await asyncio.sleep(0.2)
    print(*support.templates(), *support.children(), flush=True)
    await asyncio.sleep(1000)

asyncio.run(main())
"""
    server = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    try:
        pids = [int(pid) for pid in server.stdout.readline().split()]
        assert len(pids) == 2
    finally:
        server.kill()
        server.wait()
        server.stdout.close()

    end = time.monotonic() + 10
    while any(_runs(pid) for pid in pids):
        assert time.monotonic() < end, "a child or the template is still there"
        time.sleep(0.05)


def _runs(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):  # gone before the file is opened, or read
        return False
    return state != "Z"  # its parent has not waited for it yet


async def test_fifty_loads_leave_no_descriptor_no_thread_and_no_memory_file(serve, children):
    async def once():
        model = await serve(PID)
        await model.ask({"x": np.ones(1 << 15, np.float32)})
        await model.chain.close()

    await once()
    before = _kept()
    for _ in range(10):
        await asyncio.gather(*(once() for _ in range(5)))

    assert _kept() == before
    assert children() == []


def _kept():
    """Return the open files of this process, counted by kind, and its mappings of memfd and of /dev/shm."""
    gc.collect()
    found = Counter()
    for fd in os.listdir("/proc/self/fd"):
        try:
            found[re.sub(r"\d+", "", os.readlink(f"/proc/self/fd/{fd}"))] += 1
        except FileNotFoundError:  # the listing itself
            pass
    maps = Path("/proc/self/maps").read_text()
    return found, maps.count("memfd:"), maps.count("/dev/shm")


async def test_nothing_of_a_child_can_be_opened_by_name(serve, children):
    model = await serve(PID)
    await model.y(1)
    (pid,) = children()

    lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    shared = [line for line in lines if line.split()[1].endswith("s") and "rw" in line]

    assert shared and all("(deleted)" in line for line in shared)
    assert PORTABLE or all("/memfd:" in line for line in shared)
    assert not any("/dev/shm" in line for line in lines)


async def test_a_child_has_nothing_of_core_but_its_compiled_pieces(serve):
    source = """
    def execute(self, requests):
        heavy = [name for name in ("google.protobuf", "aiohttp", "asyncio", "orjson", "uvloop", "grpc")
                 if name in sys.modules]
        heavy += [name for name in sys.modules
                  if name.startswith("core.") and not name.startswith(("core.native", "core.cython_shared"))]
        return [pb_utils.InferenceResponse([pb_utils.Tensor(
            "y", np.array([" ".join(heavy).encode()], object))])]
    """
    model = await serve(source, datatype="BYTES")

    answer = await model.ask({"x": np.array([b""], object)})

    assert answer.output("y").array.tolist() == [b""]


async def test_log_calls_of_a_model_are_in_the_log_with_their_place(serve, folder, caplog):
    caplog.set_level(logging.DEBUG, "core")
    model = await serve(
        """
        def initialize(self, args):
            pb_utils.Logger.log_info("in initialize")

        def execute(self, requests):
            pb_utils.Logger.log_warn("two\\nlines")
            pb_utils.Logger.log("an error", pb_utils.Logger.ERROR)
            pb_utils.Logger.log_verbose("verbose \\ud800")
            return [pb_utils.InferenceResponse([])]

        def finalize(self):
            pb_utils.Logger.log_info("in finalize")
        """
    )
    await model.ask({"x": np.ones(1, np.float32)})
    await model.chain.close()

    file = str(folder / "1" / "model.py")
    found = [(r.levelname, r.getMessage()) for r in caplog.records if r.pathname == file]
    assert found == [
        ("INFO", "in initialize"),
        ("WARNING", "two\nlines"),
        ("ERROR", "an error"),
        ("DEBUG", "verbose ?"),
        ("INFO", "in finalize"),
    ]
    assert next(r.lineno for r in caplog.records if r.pathname == file) == 10


def modules_of_models():
    return {name for name in sys.modules if name.startswith("python_model_m_")}


@pytest.mark.parametrize("mode", ["thread", "inline"])
async def test_a_model_within_the_server_leaves_no_module(serve, mode):
    before = modules_of_models()
    model = await serve(PID, mode=mode)
    assert len(modules_of_models() - before) == 1

    await model.chain.close()

    assert modules_of_models() == before


@pytest.mark.parametrize("mode", ["thread", "inline"])
async def test_a_model_within_the_server_that_cannot_start_leaves_no_module(serve, mode):
    before = modules_of_models()

    with pytest.raises(CoreError, match="refuses"):
        await serve("def initialize(self, args):\n    raise RuntimeError('refuses')", mode=mode)

    assert modules_of_models() == before
