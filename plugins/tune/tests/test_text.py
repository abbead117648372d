"""Changes of config.pbtxt: the fields that differ, and nothing else."""

import pytest
from core_tune.configuration.json_form import settings_of
from core_tune.configuration.json_form import with_settings as json_with
from core_tune.configuration.text import difference, with_settings
from core_tune.configuration.threads import ThreadParameters, thread_parameters
from core_tune.settings import GPU, Settings
from google.protobuf import text_format
from google.protobuf.json_format import MessageToDict

from core.config import ModelConfig
from core.errors import CoreError

NOW = Settings(1, 16, 250)


def parsed(text):
    return MessageToDict(text_format.Parse(text, ModelConfig()), preserving_proto_field_name=True)


FILE = """\
# digits
backend: "onnxruntime"
max_batch_size: 64

# together
dynamic_batching {
  preferred_batch_size: [ 4, 16 ]  # sizes
  max_queue_delay_microseconds: 250
}

instance_group [ { kind: KIND_CPU count: 1 } ]
"""


def test_only_the_fields_that_differ_change():
    found = with_settings(FILE, NOW, Settings(2, 32, 500))

    assert found == (
        FILE.replace("[ 4, 16 ]", "[ 32 ]")
        .replace(": 250", ": 500")
        .replace("count: 1", "count: 2")
    )
    assert settings_of(parsed(found)) == Settings(2, 32, 500)


def test_equal_settings_change_nothing():
    assert with_settings(FILE, NOW, NOW) == FILE
    assert difference("x", FILE, FILE) == ""


@pytest.mark.parametrize(
    "wanted",
    [
        Settings(3, 8, 500),
        Settings(3, 32, 500, least=8),
        Settings(2, 8, threads=2),
        Settings(2, 1, kind=GPU),
    ],
)
@pytest.mark.parametrize(
    "text",
    [
        "",
        'backend: "python"\nmax_batch_size: 64',
        'backend: "python" max_batch_size: 64 dynamic_batching {} instance_group [{}]\n',
        "max_batch_size: 64\ndynamic_batching { preserve_ordering: true }\n",
        "max_batch_size: 64\ninstance_group { name: 'a' }\ninstance_group { passive: true count: 7 }\n",
        "max_batch_size: 64\ndynamic_batching {\n  preferred_batch_size: 2\n"
        "  max_queue_delay_microseconds: 9\n  preferred_batch_size: 4\n}\n",
        "max_batch_size: 64 # most\ndynamic_batching < preferred_batch_size: [2] >",
        "parameters { key: 'threads' value { string_value: '7' } }\n",
        "parameters { key: 'a' value { string_value: '7' } }\nparameters: { key: 'threads' }\n",
        "instance_group [ { kind: KIND_CPU gpus: [ 0, 1 ] count: 1 } ]",
    ],
)
def test_every_form_of_a_file_gets_the_settings(text, wanted):
    found = with_settings(text, Settings(1, 2, 1), wanted, THREADS)

    config = {"max_batch_size": 64, **parsed(found)}
    if wanted.batch > 1 or "preferred" in found:
        assert settings_of(config, THREADS) == wanted or "7" in text
    assert config.get("instance_group", [{}])[0].get("count", 1) == wanted.instances
    for name, value in parsed(text).items():
        if name not in ("dynamic_batching", "instance_group", "parameters"):
            assert config[name] == value


THREADS = ThreadParameters("threads")


def test_threads_of_all_instances_change_with_their_number():
    shared = ThreadParameters("N", total=True, streams=("STREAMS",))
    text = 'parameters { key: "N" value { string_value: "2" } }\n'
    now = settings_of({"instance_group": [{"count": 1}], **parsed(text)}, shared)

    found = with_settings(text, now, Settings(3, 0, threads=2), shared)

    assert now.threads == 2
    assert parsed(found)["parameters"] == {
        "N": {"string_value": "6"},
        "STREAMS": {"string_value": "3"},
    }
    assert settings_of(parsed(found), shared).threads == 2


@pytest.mark.parametrize(
    ("backend", "found"),
    [
        ("onnxruntime", ThreadParameters("intra_op_thread_count")),
        ("openvino", ThreadParameters("INFERENCE_NUM_THREADS", True, False, ("NUM_STREAMS",))),
        ("pytorch", ThreadParameters("INTRA_OP_THREAD_COUNT", once=True)),
        ("of_nobody", None),
    ],
)
def test_backends_declare_their_threads(backend, found):
    if found is not None:
        pytest.importorskip({"onnxruntime": "backend_onnx"}.get(backend, f"backend_{backend}"))

    assert thread_parameters(backend) == found


def test_a_difference_says_which_file():
    found = difference("m/config.pbtxt", FILE, with_settings(FILE, NOW, Settings(2, 16, 250)))

    assert found.startswith("--- m/config.pbtxt\n+++ m/config.pbtxt (tuned)\n")
    assert "-instance_group [ { kind: KIND_CPU count: 1 } ]\n" in found


GROUP = [{"name": "m_0", "count": 2, "kind": "KIND_CPU"}]


def test_settings_of_a_completed_configuration():
    assert settings_of({"instance_group": GROUP, "max_batch_size": 0}) == Settings(2, 0, 0)
    assert settings_of({"instance_group": GROUP, "max_batch_size": 8}) == Settings(2, 1, 0)
    batching = {"preferred_batch_size": ["4"], "max_queue_delay_microseconds": "100"}
    config = {"instance_group": GROUP, "max_batch_size": 8, "dynamic_batching": batching}
    assert settings_of(config) == Settings(2, 4, 100)


def test_other_fields_of_a_configuration_stay():
    config = {
        "name": "m",
        "max_batch_size": 8,
        "instance_group": [*GROUP, {"passive": True, "count": 9}],
        "dynamic_batching": {"preserve_ordering": True},
    }

    made = json_with(config, Settings(4, 8, 100))

    assert made["dynamic_batching"] == {
        "preserve_ordering": True,
        "preferred_batch_size": [8],
        "max_queue_delay_microseconds": 100,
    }
    assert [each["count"] for each in made["instance_group"]] == [4, 9]
    assert config["dynamic_batching"] == {"preserve_ordering": True}


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ({"ensemble_scheduling": {"step": [{"model_name": "a"}]}}, "tune its steps: a"),
        ({"instance_group": [*GROUP, *GROUP]}, "has 2 groups of instances that serve"),
    ],
)
def test_models_that_cannot_be_tuned(config, text):
    with pytest.raises(CoreError, match=text):
        settings_of({"name": "m", **config})
