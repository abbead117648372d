"""The effects of a server on the process that runs it, in new processes."""

import os
import signal
import subprocess
import sys
import textwrap

import pytest

from tests.becoming import INTERRUPTIBLE

BEGINNING = """
import os, signal, sys, threading, time
import numpy as np
import core

ROW = {"inputs": {"x": ("FP32", [-1])}, "outputs": {"y": ("FP32", [-1])}}
x = np.arange(4, dtype=np.float32)
"""


def started(text):
    """A process that runs a program."""
    return subprocess.Popen(
        [*INTERRUPTIBLE, sys.executable, "-W", "always::ResourceWarning", "-c", BEGINNING + text],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ran(text):
    """Exit status, output and errors of a program."""
    process = started(textwrap.dedent(text))
    out, errors = process.communicate(timeout=50)
    return process.returncode, out, errors


def test_a_program_that_drops_its_server_ends_cleanly():
    status, out, errors = ran("""
        class Noted:
            def __init__(self, name):
                self.name = name
            def __call__(self, x):
                return x
        server = core.Server().start()
        server.bind("one", Noted("one"), instances=2, **ROW)
        server.bind("two", lambda x: x, placement="auto", **ROW)
        server.infer("one", {"x": x})
        server.serve(http_port=0, metrics_port=0)
        stream = server.stream("two", {"x": x})
        server = core.Server().start()  # and one that is lost
        print("the end")
    """)

    assert (status, out, errors) == (0, "the end\n", "")


PYTHON_MODEL = """
import os
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        pid = pb_utils.Tensor("pid", np.array([os.getpid()], np.int64))
        return [pb_utils.InferenceResponse([pid]) for _ in requests]
"""
PYTHON_CONFIG = """
backend: "python"
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "pid" data_type: TYPE_INT64 dims: [ 1 ] } ]
"""


def test_the_processes_of_python_models_end_with_the_program(tmp_path):
    (tmp_path / "tell" / "1").mkdir(parents=True)
    (tmp_path / "tell" / "config.pbtxt").write_text(PYTHON_CONFIG)
    (tmp_path / "tell" / "1" / "model.py").write_text(PYTHON_MODEL)

    status, out, errors = ran(f"""
        server = core.Server(model_repository={str(tmp_path)!r}).start()
        print(os.getpid(), server.infer("tell", {{"x": x}})["pid"][0])
    """)

    assert (status, errors) == (0, "")
    mine, child = map(int, out.split())
    assert child != mine
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_ctrl_c_ends_a_program_that_waits_for_a_model():
    process = started(
        textwrap.dedent("""
        def wait(x, requests):
            print("waiting", flush=True)
            while not requests[0].cancelled:
                time.sleep(0.001)
            print("cancelled", flush=True)
            return x

        with core.Server() as server:
            server.bind("wait", wait, requests=True, **ROW)
            server.infer("wait", {"x": x})
    """)
    )
    assert process.stdout.readline() == "waiting\n"
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=50)

    assert out == "cancelled\n"
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert process.returncode == -signal.SIGINT


def test_a_child_that_was_forked_has_no_server_and_ends():
    status, out, errors = ran("""
        import warnings
        warnings.simplefilter("ignore", DeprecationWarning)
        with core.Server() as server:
            server.bind("one", lambda x: x, **ROW)
            if not (child := os.fork()):
                try:
                    server.infer("one", {"x": x})
                except core.CoreError as error:
                    print(error.kind.name, str(error)[:24], flush=True)
                with core.Server() as mine:
                    mine.bind("one", lambda x: -x, **ROW)
                    print(mine.infer("one", {"x": x})["y"][1], flush=True)
                sys.exit(3)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            print(server.infer("one", {"x": x})["y"][1])
    """)

    lines = ["UNAVAILABLE this process was forked ", "-1.0", "3", "1.0"]
    assert (status, out.splitlines(), errors) == (0, lines, "")


def test_a_program_may_end_while_other_threads_ask():
    status, out, errors = ran("""
        server = core.Server().start()
        server.bind("one", lambda x: x, batching=True, **ROW)
        row = x.reshape(1, 4)
        ended = []
        def ask():
            try:
                while True:
                    server.infer("one", {"x": row})
            except core.CoreError as error:
                ended.append(str(error))
        threads = [threading.Thread(target=ask) for _ in range(4)]
        for each in threads:
            each.start()
        while server.statistics("one")[0]["inference_count"] < 200:
            pass
        server.stop()
        for each in threads:
            each.join()
        print(ended)
    """)

    assert (status, out, errors) == (0, f"{['the server is stopped'] * 4}\n", "")


def test_a_library_leaves_the_log_of_the_program_alone():
    status, out, errors = ran("""
        import logging
        before = list(logging.getLogger().handlers), logging.getLogger("core").level
        with core.Server() as server:
            server.bind("one", lambda x: x, **ROW)
        print(before == (logging.getLogger().handlers, logging.getLogger("core").level))
        with core.Server(log_verbose=0) as server:
            server.bind("one", lambda x: x, **ROW)
    """)

    assert (status, out) == (0, "True\n")
    assert "successfully loaded 'one'" in errors
