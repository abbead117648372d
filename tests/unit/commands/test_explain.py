"""core config and explain: the server's view of a model's folder."""

import json
from types import SimpleNamespace

import pytest

import core
from core import __main__ as command
from core import plugins
from core.config import parse_text
from core.config.signature import InputSpec, OutputSpec, Signature
from core.dtypes import FP32, INT32
from frontends.commands.explain import tensors

IO = """
input [ { name: "x" data_type: TYPE_FP32 dims: [ 3 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1, 2 ] } ]
"""


class Instance(core.ModelInstance):
    placement = "inline"


def complete(config, path, backend):
    assert backend.is_open
    config.max_batch_size = int((path / "rows").read_text())


class Backend(core.Backend):
    is_open = False

    def open(self):
        self.is_open = True

    def close(self):
        self.is_open = False


@pytest.fixture
def model(tmp_path, monkeypatch):
    """Write a model of an installed backend; return its folder as text."""
    found = Backend(instance=Instance, complete=complete)
    monkeypatch.setattr(plugins, "backend", lambda name, directory="": found)

    def write(config="", name="m", versions=(1,), rows="4"):
        (tmp_path / name).mkdir()
        for version in versions:
            (tmp_path / name / str(version)).mkdir(parents=True)
            (tmp_path / name / str(version) / "rows").write_text(rows)
        (tmp_path / name / "config.pbtxt").write_text(f'backend: "mine" {IO} {config}')
        return str(tmp_path / name)

    yield write
    assert not found.is_open


def test_config_prints_the_effective_configuration(model, capsys):
    folder = model()

    assert command.main(["config", folder]) == 0

    config = parse_text(capsys.readouterr().out, "printed")
    assert config.name == "m"
    assert config.max_batch_size == 4
    assert [group.name for group in config.instance_group] == ["m"]
    assert config.version_policy.latest.num_versions == 1


def test_config_as_json_equals_that_of_the_protocol(model, capsys):
    assert command.main(["config", model(), "--json"]) == 0

    found = json.loads(capsys.readouterr().out)
    assert found["max_batch_size"] == 4
    assert found["input"][0]["dims"] == [3]


def test_a_configuration_can_be_left_incomplete(model, capsys):
    folder = model("max_batch_size: 2")

    assert command.main(["config", folder, "--disable-auto-complete-config"]) == 0

    assert "max_batch_size: 2" in capsys.readouterr().out


def rooms(text):
    return {line.split()[1]: line for line in text.splitlines() if "─►" in line}


def test_explain_names_the_pipeline_steps_in_their_order_with_their_files(model, capsys):
    assert command.main(["explain", model("dynamic_batching { }")]) == 0

    shown = capsys.readouterr().out
    assert shown.startswith("model 'm' version 1, backend 'mine'\n")
    found = rooms(shown)
    assert list(found) == ["admit", "batcher", "gather", "execute", "split", "deliver"]
    assert "x FP32[-1, 3] → y FP32[-1, -1, 2]" in found["admit"]
    assert "core/pipeline/batching/batcher.py" in found["batcher"]
    assert "up to 4 rows in one execution; rather 4; nobody waits for more" in found["batcher"]
    assert "1 instance (m_0) on cpu:0; on the event loop" in found["execute"]


@pytest.mark.parametrize(
    ("config", "room", "text"),
    [
        ("", "batcher", "requests execute one by one"),
        (
            "dynamic_batching { max_queue_delay_microseconds: 100 priority_levels: 3 "
            "default_priority_level: 2 }",
            "batcher",
            "the first waits at most 100 µs; 3 priorities",
        ),
        ("response_cache { enable: true }", "cache", "nowhere without --cache-config"),
        ("dynamic_batching { preserve_ordering: true }", "in", "answers leave in the order"),
        ("sequence_batching { oldest { } }", "sequences", "strategy oldest; idle ones end after"),
        (
            "instance_group [ { count: 6 } ]",
            "execute",
            "6 instances (m_0_0, m_0_1, m_0_2, m_0_3, …)",
        ),
    ],
)
def test_explain_describes_the_configuration(model, capsys, config, room, text):
    assert command.main(["explain", model(config)]) == 0

    assert text in rooms(capsys.readouterr().out)[room]


def test_a_shape_tensor_is_shown_without_a_batch_dimension():
    x, s = InputSpec("x", FP32, (3,)), InputSpec("s", INT32, (2,), shape_tensor=True)
    signature = Signature("m", 1, {"x": x, "s": s}, {"y": OutputSpec("y", FP32, (3,))}, 4, False)

    assert (
        tensors(SimpleNamespace(signature=signature)) == "x FP32[-1, 3], s INT32[2] → y FP32[-1, 3]"
    )


class Layered:
    @core.hookimpl
    def core_layers(self, model):
        raise AssertionError("nothing is loaded")


class Ruled:
    @core.hookimpl
    def core_batch_rule(self, model):
        raise AssertionError("nothing is loaded")


@pytest.mark.parametrize(
    ("plugin", "room", "text"),
    [
        (Layered(), "layers", "asked of quota"),
        (Ruled(), "batcher", "quota may have a rule"),
    ],
)
def test_explain_names_plugins_that_take_part(model, capsys, plugin, room, text):
    plugins.hooks().register(plugin, "quota")
    try:
        assert command.main(["explain", model("dynamic_batching { }")]) == 0
    finally:
        plugins.hooks().unregister(plugin)

    assert text in rooms(capsys.readouterr().out)[room]


def test_explain_describes_the_steps_of_an_ensemble(tmp_path, capsys):
    (tmp_path / "both" / "1").mkdir(parents=True)
    (tmp_path / "both" / "config.pbtxt").write_text(
        IO.replace("-1, 2", "2")
        + """
        platform: "ensemble"
        ensemble_scheduling { step [
          { model_name: "first" model_version: -1 input_map { key: "a" value: "x" }
            output_map { key: "b" value: "between" } },
          { model_name: "second" model_version: 3 input_map { key: "c" value: "between" }
            output_map { key: "d" value: "y" } } ] }
        """
    )

    assert command.main(["explain", str(tmp_path / "both")]) == 0

    shown = capsys.readouterr().out
    assert "an ensemble" in shown
    assert "model 'first': x as a → b as between" in shown
    assert "model 'second' version 3: between as c → d as y" in shown


def test_the_newest_or_the_requested_version_is_printed(model, capsys):
    folder = model(versions=(1, 3))

    assert command.main(["explain", folder]) == 0
    assert "version 3" in capsys.readouterr().out
    assert command.main(["explain", folder, "--version=1"]) == 0
    assert "version 1" in capsys.readouterr().out


def failed(capsys, *arguments):
    assert command.main(list(arguments)) == 1
    return capsys.readouterr().err


def test_an_error_is_printed_as_text(model, tmp_path, capsys):
    folder = model()

    assert "there is no folder '/no/where'; give that of one model" in failed(
        capsys, "config", "/no/where"
    )
    assert "has no version 9; there are 1" in failed(capsys, "config", folder, "--version=9")
    assert "is a model repository; give one of its models: m" in failed(
        capsys, "explain", str(tmp_path)
    )


def test_errors_of_a_load_occur_here_with_the_same_text(model, capsys):
    broken = model("max_batch_size: -1", name="broken")
    wrong = model(name="wrong", rows="many")

    assert "max_batch_size" in failed(capsys, "config", broken, "--disable-auto-complete-config")
    assert "ValueError: invalid literal for int()" in failed(capsys, "config", wrong)


def test_a_model_without_versions_is_refused(model, capsys):
    folder = model(versions=())

    assert "holds no folder of a version" in failed(capsys, "config", folder)
