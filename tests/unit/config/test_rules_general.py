"""Rules for a model as a whole. Texts are Triton's up to the colon; the rest names the field."""

# ruff: noqa: E501 (a searchable text stays on one line)

import re
from pathlib import Path

import pytest

from core import plugins
from core.backend import Backend, ModelInstance
from core.config import fill, parse_text, validate, validate_source
from core.config.validation import violations
from core.errors import CoreError
from core.lifecycle.parameters import warn_of_slips

INPUT = 'input { name: "x" data_type: TYPE_FP32 dims: -1 } '
OUTPUT = 'output { name: "y" data_type: TYPE_FP32 dims: -1 } '
MODEL = 'backend: "python" ' + INPUT + OUTPUT

PLATFORMS = "tensorflow_savedmodel, tensorflow_graphdef, tensorrt_plan, onnxruntime_onnx, pytorch_libtorch, torch_aoti, ensemble"
CACHE = "response_cache { enable: true } "
OUTSIDE = "in model 'm' is outside model directory"

REFUSED = [
    # name, platform, backend
    ('platform: "foo"', f"unexpected platform type 'foo' for m: platform; there are {PLATFORMS}, and 'backend' names all others"),
    ('default_model_filename: "x.bin"', "must specify 'platform' or 'backend' for 'm': the files of the model do not tell it"),
    ('platform: "foo" backend: "onnxruntime"',
     "unexpected 'platform' and 'backend' pair, got:foo, onnxruntime for m: with backend 'onnxruntime', platform is onnxruntime_onnx, or left out"),
    ('platform: "onnxruntime_onnx" backend: "pytorch"',
     "unexpected 'platform' and 'backend' pair, got:onnxruntime_onnx, pytorch for m: with backend 'pytorch', platform is pytorch_libtorch or libtorch or torch_aoti, or left out"),
    ('platform: "ensemble" backend: "python"', "Ensemble model 'm' must have platform type 'ensemble' and empty backend type: backend is 'python'"),
    ('runtime: "../x.so"', "backend library name '../x.so' escapes backend directory, for model 'm', check model config runtime field"),
    ('runtime: ".."', "backend library name '..' escapes backend directory, for model 'm', check model config runtime field"),
    # batch size
    ("max_batch_size: -1", "'max_batch_size' must be non-negative value for m: max_batch_size is -1"),
    # agents
    ('model_repository_agents { agents [ { name: "checksum" }, { } ] }',
     "a repository agent must have a name for m: model_repository_agents.agents[1].name"),
    # cache
    (CACHE + "sequence_batching { }",
     "Response Cache does not currently support model m with sequence batching scheduler. Please disable the response cache: response_cache.enable is true"),
    (CACHE + "model_transaction_policy { decoupled: true }",
     "Response Cache does not currently support model m with 'decoupled' transaction policy. Please disable the response cache: response_cache.enable is true"),
    # files
    ('default_model_filename: "/etc/passwd"', f"default_model_filename '/etc/passwd' {OUTSIDE}"),
    ('default_model_filename: "../../other/1/model.py"', f"default_model_filename '../../other/1/model.py' {OUTSIDE}"),
    ('default_model_filename: "a/../../../model.py"', f"default_model_filename 'a/../../../model.py' {OUTSIDE}"),
    (r'default_model_filename: "a\000.py"', "default_model_filename 'a\0.py' in model 'm' has a zero byte, which no file name has"),
    ('cc_model_filenames { key: "7.5" value: "/x" }', f"cc_model_filenames['7.5'] '/x' {OUTSIDE}"),
    ('cc_model_filenames { key: "7.5" value: "../../x" }', f"cc_model_filenames['7.5'] '../../x' {OUTSIDE}"),
    ('max_batch_size: 1 model_warmup { batch_size: 1 inputs { key: "x" value { input_data_file: "../../x" } } }',
     f"model_warmup[0].inputs['x'].input_data_file '../../x' {OUTSIDE}"),
    ('sequence_batching { state { initial_state { data_file: "../../x" } } }',
     f"sequence_batching.state[0].initial_state data_file '../../x' {OUTSIDE}"),
    (r'output { name: "z" data_type: TYPE_FP32 dims: 1 label_filename: "a\000" }', "output[1].label_filename 'a\0' in model 'm' has a zero byte, which no file name has"),
]  # fmt: skip


def whole(text):
    """The text of a model that is otherwise in order; what begins with its platform names it all."""
    return (
        text + INPUT + OUTPUT
        if text.startswith(("platform", 'default_model_filename: "x'))
        else MODEL + text
    )


@pytest.mark.parametrize(("text", "expected"), REFUSED)
def test_a_model_is_refused(refusal, text, expected):
    assert refusal(whole(text)) == expected


@pytest.mark.parametrize(
    "text", [text for text, _ in REFUSED if not text.startswith("response_cache")]
)
def test_errors_that_no_backend_can_fix_are_refused_before_it_opens(text):
    config = parse_text(whole(text), "test")
    fill(config, "m", plugins.formats())

    with pytest.raises(CoreError):
        validate_source(config, plugins.formats())


def test_a_configuration_has_a_name_and_a_version_policy():
    config = parse_text(MODEL, "test")
    with pytest.raises(CoreError, match="model configuration must specify 'name'"):
        validate(config, plugins.formats())

    config.name = "m"
    with pytest.raises(CoreError, match="must specify 'version policy' for m"):
        validate(config, plugins.formats())


def control(text):
    return f"model_metrics {{ metric_control {{ {text} }} }}"


FAMILY = 'metric_identifier { family: "f" } '


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (control(""), "metric control must specify 'metric_identifier' for m: model_metrics.metric_control[0]"),
        (control("metric_identifier { }"), "metric identifier must specify non-empty 'family' for m: model_metrics.metric_control[0].metric_identifier"),
        (control(FAMILY), "metric control must specify 'histogram_options' for m: model_metrics.metric_control[0] ('f')"),
        (control(FAMILY + "histogram_options { }"),
         "histogram options must specify non-empty 'buckets' for m: model_metrics.metric_control[0] ('f').histogram_options"),
        (control(FAMILY + "histogram_options { buckets: [3, 1] }"),
         "histogram options must specify 'buckets' in ascending order for m: model_metrics.metric_control[0] ('f').histogram_options.buckets is [3.0, 1.0]"),
        (control(FAMILY + "histogram_options { buckets: [1, 1] }"),
         "histogram options must specify 'buckets' in ascending order for m: model_metrics.metric_control[0] ('f').histogram_options.buckets is [1.0, 1.0]"),
        (control(FAMILY + "histogram_options { buckets: nan }"),
         "histogram options must specify 'buckets' in ascending order for m: model_metrics.metric_control[0] ('f').histogram_options.buckets is [nan]"),
        ('metric_tags { key: "a b" value: "c" }', "metric tag must consist of letters, digits and underscores for m: metric_tags has the key 'a b'"),
        ('metric_tags { key: "" value: "c" }', "metric tag must consist of letters, digits and underscores for m: metric_tags has the key ''"),
    ],
)  # fmt: skip
def test_metrics_are_refused(refusal, text, expected):
    assert refusal(MODEL + text) == expected


@pytest.mark.parametrize(
    ("text", "member", "shown"),
    [
        ("", "version_policy", {"latest": {"num_versions": 1}}),
        ("version_policy { latest { num_versions: 3 } }", "version_policy", {"latest": {"num_versions": 3}}),
        ("version_policy { all { } }", "version_policy", {"all": {}}),
        ("version_policy { specific { versions: [ 7, -1 ] } }", "version_policy", {"specific": {"versions": [7, -1]}}),
        ("max_batch_size: 0", "max_batch_size", 0),
        ('runtime: "x.so"', "runtime", "x.so"),
        ("", "default_model_filename", "model.py"),
        ('default_model_filename: "a/model.py"', "default_model_filename", "a/model.py"),
        ('default_model_filename: "../shared.py"', "default_model_filename", "../shared.py"),
        ('default_model_filename: "a/../model.py"', "default_model_filename", "a/../model.py"),
        ('default_model_filename: "..model.py"', "default_model_filename", "..model.py"),
        ('cc_model_filenames { key: "7.5" value: "b.plan" }', "cc_model_filenames", {"7.5": "b.plan"}),
        ('metric_tags { key: "a_1" value: "b c" }', "metric_tags", {"a_1": "b c"}),
        (CACHE, "response_cache", {"enable": True}),
        ("response_cache { } sequence_batching { }", "response_cache", {"enable": False}),
        ("model_repository_agents { }", "model_repository_agents", {"agents": []}),
        ("model_metrics { }", "model_metrics", {"metric_control": []}),
        (control(FAMILY + "histogram_options { buckets: [-1, 0.5, 2] }"), "model_metrics",
         {"metric_control": [{"metric_identifier": {"family": "f"}, "histogram_options": {"buckets": [-1, 0.5, 2]}}]}),
        ("", "optimization",
         {"priority": "PRIORITY_DEFAULT", "input_pinned_memory": {"enable": True}, "output_pinned_memory": {"enable": True},
          "gather_kernel_buffer_threshold": 0, "eager_batching": False}),
        ('parameters { key: "k" value { } }', "parameters", {"k": {"string_value": ""}}),
    ],
)  # fmt: skip
def test_a_model_is_accepted(settled, text, member, shown):
    assert settled(MODEL + text)[member] == shown


@pytest.mark.parametrize(
    "text",
    [
        'backend: "python"',
        'platform: "libtorch" ' + INPUT + OUTPUT,
        'backend: "mine" platform: "any" ' + INPUT + OUTPUT,
        'backend: "fil" ' + INPUT + OUTPUT,
    ],
)
def test_a_backend_is_named_in_any_of_its_ways(settled, text):
    assert settled(text)["backend"]


def test_the_page_about_configurations_is_up_to_date(settled, refusal, caplog):
    page = (Path(__file__).parents[3] / "docs" / "serve" / "model-configuration.md").read_text()
    model, warning, texts = re.findall(r"```(?:protobuf|text)\n(.*?)```", page, re.S)

    assert settled('name: "classifier" ' + model)["version_policy"] == {
        "latest": {"num_versions": 2}
    }
    told = refusal('name: "classifier" ' + model.replace("[ 4, 8 ]", "[ 4, 16 ]"))
    assert told in texts.splitlines()
    with pytest.raises(CoreError) as caught:
        parse_text("\n\n\ninput { name: 'x' dim: 3 }", "models/classifier/config.pbtxt")
    assert caught.value.message in texts.splitlines()

    slipped = parse_text(
        "name: 'classifier' parameters { key: 'intra_op_threads' value { string_value: '1' } }", "m"
    )
    backend = Backend(instance=ModelInstance, known_parameters=("intra_op_thread_count",))
    backend.name = "onnxruntime"
    warn_of_slips(slipped, backend)
    assert caplog.messages == warning.splitlines()


def test_violations_are_the_first_of_each_group_of_rules():
    text = (
        'name: "m" backend: "identity" max_batch_size: 2 version_policy { } '
        "dynamic_batching { preferred_batch_size: [ 3, 4 ] } "
        'input { name: "x" data_type: TYPE_FP32 dims: 0 } input { data_type: TYPE_FP32 dims: 1 } '
        'metric_tags { key: "a b" value: "" } instance_group { kind: KIND_GPU }'
    )
    config = parse_text(text, "m")

    found = [
        error.message.partition(" for m")[0] for error in violations(config, plugins.formats())
    ]

    assert found == [
        "dynamic batching preferred size must be <= max batch size",
        "metric tag must consist of letters, digits and underscores",
        "model input 'x' dimension must be integer >= 1, or -1 to indicate a variable-size dimension",
        "instance group  of model m has kind KIND_GPU but no GPUs are available: instance_group[0]",
    ]
    assert list(violations(config, plugins.formats(), None)) == []
    with pytest.raises(CoreError, match="preferred size must be <="):
        validate(config, plugins.formats())
