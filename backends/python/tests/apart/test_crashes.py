"""A crash of a model of another backend in a child process affects no other model."""

import os
import signal
import sys
import time

import numpy as np
import pytest

import core
from core import plugins
from core.errors import CoreError

CRASHING = """
import os, signal
from pathlib import Path
import core

class Model(core.Model):
    def load(self):
        if (self.path / "poison").exists():
            os.kill(os.getpid(), signal.SIGSEGV)

class Instance(core.ModelInstance):
    def execute(self, batch):
        x = batch["x"]
        if (x == -1).any():
            os.kill(os.getpid(), signal.SIGSEGV)
        if (x == -2).any():
            raise core.Fatal("the device is gone")
        if (x == -4).any():
            raise core.CoreError(core.Kind.INVALID, "such a number")
        if (x == -3).any():
            raise ValueError("not this")
        assert not self.model.config.parameters
        settings = self.model.backend.config
        return {"y": x + int(settings.get("add", 0)), "pid": np_full(x, os.getpid())}

def np_full(x, value):
    import numpy
    return numpy.full(x.shape, value, numpy.int64)

def complete(config, path, backend):
    if (path / "poison_to_look_at").exists():
        os.abort()
    config.max_batch_size = 8
    for names, kind in (("x",), 9), (("y", "pid"), 9):
        entries = config.input if names == ("x",) else config.output
        for name in names:
            entries.add(name=name, data_type=kind, dims=[1])

backend = core.Backend(model=Model, instance=Instance, complete=complete)
"""
APART = 'parameters { key: "EXECUTION_MODE" value { string_value: "process" } }\n'
CONFIG = 'backend: "crashing"\ninstance_group { count: 1 kind: KIND_CPU }\n'


@pytest.fixture(scope="module", autouse=True)
def installed(tmp_path_factory):
    """A backend that can crash, in a separate distribution."""
    folder = tmp_path_factory.mktemp("installed")
    info = folder / "backend_crashing-1.dist-info"
    info.mkdir()
    (folder / "crashing.py").write_text(CRASHING)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: backend-crashing\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[core.backends]\ncrashing = crashing:backend\n")
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(folder))
        patched.setenv("PYTHONPATH", str(folder))
        plugins.look_again()
        yield
    plugins.look_again()
    plugins.hooks().unregister(name="backend crashing")
    del sys.modules["crashing"]


@pytest.fixture
def serve(tmp_path):
    """serve(name=more of config.pbtxt, …, files=[(name, file)]): a server with that backend."""

    def start(files=(), **models):
        for name, more in models.items():
            (tmp_path / "models" / name / "1").mkdir(parents=True)
            (tmp_path / "models" / name / "config.pbtxt").write_text(CONFIG + more)
        for name, file in files:
            (tmp_path / "models" / name / "1" / file).touch()
        return core.Server(
            model_repository=str(tmp_path / "models"),
            backend_config={"crashing": {"add": "10"}},
            strict_readiness=False,
            exit_on_error=False,
        )

    return start


def x(*values):
    return {"x": np.array(values, np.int64).reshape(-1, 1)}


def until_it_answers(server, name, within_s=20):
    end = time.monotonic() + within_s
    while True:
        try:
            return server.infer(name, x(1))
        except CoreError:
            if time.monotonic() > end:
                raise
            time.sleep(0.02)


def test_a_model_runs_in_a_child_process_with_its_backends_settings(serve):
    with serve(m=APART) as server:
        answer = server.infer("m", x(1, 2))

        assert answer["y"].tolist() == [[11], [12]]
        assert answer["pid"][0, 0] != os.getpid()


def test_without_the_wish_it_runs_in_the_server(serve):
    with serve(m="") as server:
        assert server.infer("m", x(1))["pid"][0, 0] == os.getpid()


def test_a_crash_fails_its_request_and_the_model_serves_again(serve):
    with serve(m=APART, other=APART) as server:
        other = server.infer("other", x(1))["pid"]
        first = server.infer("m", x(1))["pid"]
        with pytest.raises(CoreError, match="Stub process 'm_0_0' is not healthy"):
            server.infer("m", x(-1))

        assert until_it_answers(server, "m")["pid"] != first
        assert server.infer("other", x(1))["pid"] == other


def test_an_error_of_the_model_is_its_requests_alone(serve):
    with serve(m=APART) as server:
        pid = server.infer("m", x(1))["pid"]
        with pytest.raises(CoreError, match="not this"):
            server.infer("m", x(-3))

        assert server.infer("m", x(1))["pid"] == pid


def test_an_error_of_core_keeps_its_kind(serve):
    with serve(m=APART) as server:
        with pytest.raises(CoreError) as refusal:
            server.infer("m", x(-4))

        assert (refusal.value.kind, refusal.value.message) == (core.Kind.INVALID, "such a number")
        assert server.infer("m", x(1))["y"] == 11


def test_an_instance_that_leaves_service_is_replaced(serve):
    with serve(m=APART) as server:
        pid = server.infer("m", x(1))["pid"]
        with pytest.raises(CoreError, match="not healthy"):
            server.infer("m", x(-2))

        assert until_it_answers(server, "m")["pid"] != pid


@pytest.mark.parametrize("poison", ["poison", "poison_to_look_at"])
def test_a_file_that_crashes_its_reader_fails_that_load_alone(serve, poison):
    with serve(files=[("bad", poison)], bad=APART, good=APART) as server:
        assert server.infer("good", x(1))["y"] == 11
        states = {each["name"]: each for each in server.index()}
        assert states["good"]["state"] == "READY"
        assert states["bad"]["state"] == "UNAVAILABLE"
        assert "not healthy" in states["bad"]["reason"]


def test_a_model_that_python_runs_is_left_to_it(serve, tmp_path):
    folder = tmp_path / "models" / "py" / "1"
    folder.mkdir(parents=True)
    (folder / "model.py").write_text(
        "import os\nimport numpy as np\nimport triton_python_backend_utils as pb_utils\n"
        "class TritonPythonModel:\n"
        "    def execute(self, requests):\n"
        "        y = np.array([[os.getpid()]])\n"
        "        return [pb_utils.InferenceResponse([pb_utils.Tensor('y', y)]) for _ in requests]\n"
    )
    (folder.parent / "config.pbtxt").write_text(
        'backend: "python"\nmax_batch_size: 1\n'
        + APART
        + "input { name: 'x' data_type: TYPE_INT64 dims: 1 }\n"
        "output { name: 'y' data_type: TYPE_INT64 dims: 1 }\n"
    )
    with serve() as server:
        assert server.infer("py", x(1))["y"][0, 0] != os.getpid()


def test_a_killed_process_leaves_nothing(serve):
    with serve(m=APART) as server:
        pid = int(server.infer("m", x(1))["pid"][0, 0])
        os.kill(pid, signal.SIGKILL)
        until_it_answers(server, "m")
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
