"""Parameters that plugins read: `core check` knows their names, and says of their values what a load says."""

import pytest
from repository_check.broken_models import ECHO, ONNX, PYTHON, X, Y, onnx_model, write

import core
from core import plugins
from core.errors import invalid
from frontends.commands.check.parameters import PARAMETER_CHECKS

pytest.importorskip("core_memory_budget")
pytest.importorskip("core_traffic")


def parameter(name, value):
    return f"parameters {{ key: \"{name}\" value {{ string_value: '{value}' }} }}\n"


RIGHT = parameter("memory.pin", "true") + parameter("traffic", '{"weights": {"1": 1}}')
WRONG = {
    "pinned": (parameter("memory.pin", "yes"), "memory.pin is 'yes', expected true or false"),
    "unread": (parameter("traffic", "{"), "parameter 'traffic' is not JSON"),
    "weightless": (parameter("traffic", '{"weights": {"1": 0}}'), "weights are all 0"),
}


def test_parameters_of_plugins_are_known_with_each_backend(tmp_path, findings):
    write(tmp_path / "onnx", onnx_model(ONNX + X + Y + RIGHT))
    write(tmp_path / "python", {"config.pbtxt": PYTHON + RIGHT, "1/model.py": ECHO})

    assert [each for each in findings(tmp_path) if each["level"] != "note"] == []


def test_a_name_near_that_of_a_plugin_is_a_slip(tmp_path, findings):
    write(tmp_path / "m", onnx_model(ONNX + X + Y + parameter("memory.pim", "true")))

    (found,) = findings(tmp_path)

    assert (found["level"], found["rule"], found["line"]) == ("warning", "parameter", 5)
    assert found["text"].endswith("is 'memory.pin' meant?")


def test_wrong_values_are_errors_with_the_text_of_the_load(tmp_path, findings):
    for name, (lines, _) in WRONG.items():
        write(tmp_path / name, onnx_model(ONNX + X + Y + lines))

    found = {each["model"]: each for each in findings(tmp_path)}
    with core.Server(model_repository=str(tmp_path), exit_on_error=False) as server:
        reasons = {each["name"]: each["reason"] for each in server.index()}

    assert found.keys() == reasons.keys() == WRONG.keys()
    for name, (_, text) in WRONG.items():
        each = found[name]
        assert (each["level"], each["rule"], each["line"]) == ("error", "parameter", 5)
        assert text in each["text"]
        assert reasons[name] == f"Invalid argument: {each['text']}"


def test_a_plugin_whose_check_fails_ends_no_other_check(tmp_path, findings, monkeypatch):
    class Found:
        def __init__(self, error):
            self.error = error

        def load(self):
            return self

        def __call__(self, config):
            raise self.error

    there = {"broken": Found(KeyError("x")), "strict": Found(invalid("parameter 'p' is odd"))}
    every = plugins.installed
    monkeypatch.setattr(
        plugins, "installed", lambda group: there if group == PARAMETER_CHECKS else every(group)
    )
    write(tmp_path / "m", onnx_model(ONNX + X + Y))

    found = [(each["level"], each["rule"], each["text"]) for each in findings(tmp_path)]

    assert ("error", "parameter", "parameter 'p' is odd") in found
    (level, rule, text) = next(each for each in found if "'broken'" in each[2])
    assert (level, rule) == ("warning", "unchecked")
    assert "plugin 'broken' cannot check the parameters: KeyError" in text
