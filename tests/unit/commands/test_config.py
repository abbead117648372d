"""core config: exit status 1 and the load's error for a model that a load refuses."""

import re

import pytest

import core
from core import __main__ as command
from core import plugins

IO = """
input [ { name: "x" data_type: TYPE_FP32 dims: [ 3 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 3 ] } ]
"""
STEP = """
step {{ model_name: "{model}" model_version: {version}
  input_map {{ key: "{input}" value: "x" }} output_map {{ key: "y" value: "y" }} }}
"""


class Model(core.Model):
    def load(self):
        self.backend.calls.append(f"load {self.name}")
        if "refused" in self.name:
            raise ValueError("its file is of another kind")

    def unload(self):
        self.backend.calls.append(f"unload {self.name}")


class Instance(core.ModelInstance):
    def open(self):
        self.model.backend.calls.append(f"open {self.model.name}")

    def close(self):
        self.model.backend.calls.append(f"close {self.model.name}")


@pytest.fixture
def backend(monkeypatch):
    found = core.Backend(model=Model, instance=Instance)
    found.calls = []
    monkeypatch.setattr(plugins, "backend", lambda name, directory="": found)
    return found


@pytest.fixture
def write(tmp_path, backend):
    """Write a model; its folder as text."""

    def write(name, config="", versions=(1,)):
        for version in versions:
            (tmp_path / name / str(version)).mkdir(parents=True)
        (tmp_path / name / "config.pbtxt").write_text(config or f'backend: "mine" {IO}')
        return str(tmp_path / name)

    return write


def ensemble(model, version=-1, input="x"):
    step = STEP.format(model=model, version=version, input=input)
    return f'platform: "ensemble" {IO} ensemble_scheduling {{ {step} }}'


def refused(folder, capsys):
    assert command.main(["config", folder]) == 1
    return capsys.readouterr().err


def test_a_model_is_loaded_and_given_back(write, backend, capsys):
    assert command.main(["config", write("m")]) == 0

    assert backend.calls == ["load m", "open m", "close m", "unload m"]


def test_a_refused_load_prints_its_error(write, capsys):
    text = refused(write("refused"), capsys)

    assert re.fullmatch(
        r"error: load\(\) at \S+/test_config\.py:\d+: ValueError: its file is of another kind\n",
        text,
    )


def test_explain_loads_no_model(write, backend, capsys):
    assert command.main(["explain", write("refused")]) == 0

    assert backend.calls == []


def test_the_models_of_an_ensemble_are_in_its_folder(write, backend, capsys):
    write("m")

    assert command.main(["config", write("e", ensemble("m"))]) == 0

    assert backend.calls == ["load m", "open m", "close m", "unload m"]


@pytest.mark.parametrize(
    ("config", "text"),
    [
        (ensemble("absent"), "'e' contains models that are not available or ambiguous: 'absent'"),
        (ensemble("../m"), "'../m' is no name of a model"),
        (
            ensemble("refused"),
            "model 'refused': Internal: load() at tests/unit/commands/test_config.py:",
        ),
        (ensemble("m", 7), "depends on 'm' whose required version 7 is not loaded: step 0"),
        (ensemble("m", 1), "depends on 'm' whose required version 1 is not loaded: step 0"),
        (ensemble("m", input="z"), "the model has no input 'z'; it has x"),
        (ensemble("e"), "circular dependency between ensembles: e -> e"),
    ],
)
def test_a_step_that_a_load_would_refuse_is_named(write, capsys, config, text):
    write("m", versions=(1, 2))
    write("refused")

    assert text in refused(write("e", config), capsys)
