"""Parameters of config.pbtxt."""

import sys

import numpy as np
import pytest
import torch
from backend_pytorch import threads
from backend_pytorch.parameters import BOOLEANS, Parameters

from core.config import parse_text
from core.errors import CoreError
from core.system.platform import PORTABLE

X = np.zeros(1, np.float32)
COUNTER = """
input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "n" data_type: TYPE_FP32 dims: [ 1 ] } ]
instance_group [ { count: 2 kind: KIND_CPU } ]
"""


def written(**values):
    return "".join(
        f'parameters {{ key: "{name}" value: {{ string_value: "{value}" }} }}\n'
        for name, value in values.items()
    )


def read(**values):
    return Parameters(parse_text('name: "m" ' + written(**values), "test"))


@pytest.fixture
def kept(monkeypatch):
    """Give the test its own process-wide settings."""
    count, fresh = torch.get_num_threads(), threads.ProcessSettings()
    for user in ("backend", "instance"):  # the package has another name `backend`
        module = sys.modules[f"backend_pytorch.{user}"]
        monkeypatch.setattr(module, "settings", fresh)
    yield
    torch.set_num_threads(count)


@pytest.mark.parametrize("name", BOOLEANS)
def test_a_switch_is_true_or_false(name):
    for text in ("true", "1", "On", " yes "):
        assert read(**{name: text}).boolean(name) is True
    for text in ("False", "0", "off", "no"):
        assert read(**{name: text}).boolean(name) is False
    with pytest.raises(
        CoreError, match=f"model 'm': parameter '{name}' is 'maybe', it must be true or"
    ):
        read(**{name: "maybe"}).check()


@pytest.mark.parametrize("text", ["0", "-1"])
def test_no_number_of_threads_is_the_default(text):
    assert read(INTRA_OP_THREAD_COUNT=text).threads("INTRA_OP_THREAD_COUNT") is None


@pytest.mark.parametrize("text", ["two", "1.5", "", "1000000", "9" * 5000])
def test_a_number_of_threads_is_a_whole_number(text):
    with pytest.raises(
        CoreError, match=r"'INTRA_OP_THREAD_COUNT' is '.*', it must be a whole number"
    ):
        read(INTRA_OP_THREAD_COUNT=text).check()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[1]", "a JSON object"),
        ("{", "a JSON object"),
        ('{\\"model\\": 1}', "with fullgraph, dynamic"),
    ],
)
def test_arguments_of_torch_compile_are_a_json_object(text, reason):
    with pytest.raises(CoreError, match=reason):
        read(TORCH_COMPILE_OPTIONAL_PARAMETERS=text).check()


ASKING = """
import torch

class Threads(torch.nn.Module):
    def forward(self, x):
        return torch.full((1,), float(torch.get_num_threads()))
"""


def test_the_first_model_sets_the_number_of_threads(serve, kept, caplog):
    def fill(folder):
        (folder / "model.py").write_text(ASKING)

    runtime = 'runtime: "model.py" backend: "pytorch" ' + COUNTER
    first = serve(fill, runtime)
    serve(fill, runtime + written(INTRA_OP_THREAD_COUNT=3))
    third = serve(fill, runtime + written(NUM_THREADS=2))

    assert "stays 3, which model 'm' has set first; 2 is ignored" in caplog.text
    for model in (first, third):  # also on threads that have run something before
        assert model(x=X)["n"].tolist() == [3]


def test_a_late_setting_of_interop_threads_is_logged(serve, modules, kept, caplog):
    count = torch.get_num_interop_threads()

    serve(modules.Counter(), COUNTER + written(NUM_INTEROP_THREADS=count + 1))

    changed = torch.get_num_interop_threads() == count + 1
    assert changed or f"INTER_OP_THREAD_COUNT cannot be {count + 1} now" in caplog.text


@pytest.mark.skipif(PORTABLE, reason="only Linux says which cores a process may use")
def test_one_core_is_left_to_the_server(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda process: set(range(4)), raising=False)

    assert threads.intra_op_threads(16) == 3
    assert threads.intra_op_threads(2) == 2
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0}, raising=False)
    assert threads.intra_op_threads(16) == 1


@pytest.mark.parametrize(
    "name", ["DISABLE_OPTIMIZED_EXECUTION", "DISABLE_CUDNN", "ENABLE_CACHE_CLEANING"]
)
@pytest.mark.parametrize("value", ["true", "false"])
def test_a_model_answers_the_same_with_every_switch(serve, modules, name, value):
    model = serve(modules.Counter(), COUNTER + written(**{name: value, "INFERENCE_MODE": value}))

    assert model(x=X)["n"].tolist() == [1]


def test_inference_mode_is_on_unless_it_is_turned_off(serve):
    code = (
        "import torch\n"
        "class Mode(torch.nn.Module):\n"
        "    def forward(self, x):\n"
        "        modes = torch.is_inference_mode_enabled() + 2 * torch.is_grad_enabled()\n"
        "        return torch.full((1,), float(modes))\n"
    )

    def fill(folder):
        (folder / "model.py").write_text(code)

    runtime = 'runtime: "model.py" backend: "pytorch" '
    assert serve(fill, runtime + COUNTER)(x=X)["n"].tolist() == [1]
    off = runtime + COUNTER + written(INFERENCE_MODE="false")
    assert serve(fill, off)(x=X)["n"].tolist() == [0]


class TestWeights:
    """Instances share a program that keeps nothing between runs."""

    @pytest.fixture
    def opened(self, serve, script, modules, monkeypatch):
        """opened(module, config): return how often two instances load its file."""

        def count(module, more=""):
            import backend_pytorch.torchscript as loading

            made = []
            load = loading.open_torchscript
            monkeypatch.setattr(
                loading, "open_torchscript", lambda *a, **k: made.append(1) or load(*a, **k)
            )
            serve(module, COUNTER.replace("[ 1 ]", "[ -1 ]") + more)
            monkeypatch.undo()
            return len(made)

        return count

    def test_a_program_without_state_is_loaded_once(self, opened, modules):
        assert opened(modules.Identity()) == 1
        assert opened(modules.Convolutions().eval()) == 1
        assert opened(modules.InPlace()) == 1

    def test_a_program_that_writes_to_itself_is_loaded_for_each_instance(self, opened, modules):
        assert opened(modules.Counter()) == 2
        assert opened(modules.Attribute()) == 2

    def test_the_configuration_decides_if_it_has_the_setting(self, opened, modules):
        assert opened(modules.Counter(), written(ENABLE_WEIGHT_SHARING="true")) == 1
        assert opened(modules.Identity(), written(ENABLE_WEIGHT_SHARING="false")) == 2
