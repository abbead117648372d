"""The JSON of the model configuration and of load requests."""

# ruff: noqa: E501 (a searchable text stays on one line)

import json

import pytest

from core import plugins
from core.config import ModelConfig, fill, normalise, parse_json, parse_text, to_json, validate
from core.errors import CoreError, Kind

# What tritonserver 2.51 answered to GET /v2/models/M/config for the texts above them.
SEQUENCE = """
backend: "python" max_batch_size: 4
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
sequence_batching {
  direct { minimum_slot_utilization: 0.3 max_queue_delay_microseconds: 10 }
  control_input [
    { name: "START" control [ { kind: CONTROL_SEQUENCE_START fp32_false_true: [0, 1] } ] },
    { name: "CORRID" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } ] }
  ]
}
"""
SEQUENCE_JSON = (
    '{"name":"g_seq","platform":"","backend":"python","runtime":"","version_policy":{"latest":'
    '{"num_versions":1}},"max_batch_size":4,"input":[{"name":"INPUT0","data_type":"TYPE_FP32",'
    '"format":"FORMAT_NONE","dims":[-1],"is_shape_tensor":false,"allow_ragged_batch":false,'
    '"optional":false,"is_non_linear_format_io":false}],"output":[{"name":"OUTPUT0","data_type":'
    '"TYPE_FP32","dims":[-1],"label_filename":"","is_shape_tensor":false,'
    '"is_non_linear_format_io":false}],"batch_input":[],"batch_output":[],"optimization":'
    '{"priority":"PRIORITY_DEFAULT","input_pinned_memory":{"enable":true},"output_pinned_memory":'
    '{"enable":true},"gather_kernel_buffer_threshold":0,"eager_batching":false},'
    '"sequence_batching":{"direct":{"max_queue_delay_microseconds":10,"minimum_slot_utilization":'
    '0.3},"max_sequence_idle_microseconds":1000000,"control_input":[{"name":"START","control":'
    '[{"kind":"CONTROL_SEQUENCE_START","int32_false_true":[],"fp32_false_true":[0,1],'
    '"bool_false_true":[],"data_type":"TYPE_INVALID"}]},{"name":"CORRID","control":[{"kind":'
    '"CONTROL_SEQUENCE_CORRID","int32_false_true":[],"fp32_false_true":[],"bool_false_true":[],'
    '"data_type":"TYPE_UINT64"}]}],"state":[],"iterative_sequence":false},"instance_group":'
    '[{"name":"g_seq","kind":"KIND_CPU","count":1,"gpus":[],"secondary_devices":[],"profile":[],'
    '"passive":false,"host_policy":""}],"default_model_filename":"model.py","cc_model_filenames":'
    '{},"metric_tags":{},"parameters":{},"model_warmup":[]}'
)
QUEUE = """
backend: "python" max_batch_size: 16
input [ { name: "A" data_type: TYPE_STRING format: FORMAT_NCHW dims: [ 2, -1, 6 ]
          reshape { shape: [ 2, 1, -1, 2, 3 ] } optional: true allow_ragged_batch: true } ]
output [ { name: "O" data_type: TYPE_BF16 dims: [ 1 ] reshape { shape: [ ] } } ]
dynamic_batching {
  preferred_batch_size: [ 4, 8 ] max_queue_delay_microseconds: 250
  priority_levels: 3 default_priority_level: 2
  default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 9000000
                         allow_timeout_override: true max_queue_size: 5 }
  priority_queue_policy { key: 3 value { default_timeout_microseconds: 7 } }
}
parameters { key: "a" value { string_value: "2" } }
model_transaction_policy { }
"""
QUEUE_JSON = (
    '{"name":"g_queue","platform":"","backend":"python","runtime":"","version_policy":{"latest":'
    '{"num_versions":1}},"max_batch_size":16,"input":[{"name":"A","data_type":"TYPE_STRING",'
    '"format":"FORMAT_NCHW","dims":[2,-1,6],"reshape":{"shape":[2,1,-1,2,3]},"is_shape_tensor":'
    'false,"allow_ragged_batch":true,"optional":true,"is_non_linear_format_io":false}],"output":'
    '[{"name":"O","data_type":"TYPE_BF16","dims":[1],"reshape":{"shape":[]},"label_filename":"",'
    '"is_shape_tensor":false,"is_non_linear_format_io":false}],"batch_input":[],"batch_output":[],'
    '"optimization":{"priority":"PRIORITY_DEFAULT","input_pinned_memory":{"enable":true},'
    '"output_pinned_memory":{"enable":true},"gather_kernel_buffer_threshold":0,"eager_batching":'
    'false},"dynamic_batching":{"preferred_batch_size":[4,8],"max_queue_delay_microseconds":250,'
    '"preserve_ordering":false,"priority_levels":3,"default_priority_level":2,'
    '"default_queue_policy":{"timeout_action":"DELAY","default_timeout_microseconds":9000000,'
    '"allow_timeout_override":true,"max_queue_size":5},"priority_queue_policy":{"3":'
    '{"timeout_action":"REJECT","default_timeout_microseconds":7,"allow_timeout_override":false,'
    '"max_queue_size":0}}},"instance_group":[{"name":"g_queue","kind":"KIND_CPU","count":1,'
    '"gpus":[],"secondary_devices":[],"profile":[],"passive":false,"host_policy":""}],'
    '"default_model_filename":"model.py","cc_model_filenames":{},"metric_tags":{},"parameters":'
    '{"a":{"string_value":"2"}},"model_warmup":[],"model_transaction_policy":{"decoupled":false}}'
)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [("g_seq", SEQUENCE, SEQUENCE_JSON), ("g_queue", QUEUE, QUEUE_JSON)],
)
def test_a_configuration_is_shown_letter_by_letter_as_triton_shows_it(name, text, expected):
    config = parse_text(text, "test")
    fill(config, name, plugins.formats(), ["model.py"])
    normalise(config, {}, [])
    validate(config, plugins.formats())

    assert json.dumps(to_json(config), separators=(",", ":")) == expected


def test_integers_of_64_bits_are_numbers():
    config = parse_text(
        """
        sequence_batching { state { dims: 3 initial_state { dims: 4 zero_data: true name: "n" } } }
        instance_group { secondary_devices { device_id: 3 } }
        version_policy { specific { versions: 9007199254740993 } }
        """,
        "test",
    )

    found = to_json(config)

    assert found["sequence_batching"]["state"][0]["initial_state"] == [
        {"data_type": "TYPE_INVALID", "dims": [4], "name": "n", "zero_data": True}
    ]
    assert found["instance_group"][0]["secondary_devices"][0]["device_id"] == 3
    assert found["version_policy"]["specific"]["versions"] == [9007199254740993]


def test_floats_are_as_short_as_they_can_be_and_never_infinite_numbers():
    config = ModelConfig()
    config.sequence_batching.direct.minimum_slot_utilization = 0.1
    control = config.model_metrics.metric_control.add()
    control.histogram_options.buckets.extend([0.1, 2.0, float("inf"), float("-inf")])

    found = to_json(config)

    assert json.dumps(found["sequence_batching"]["direct"]["minimum_slot_utilization"]) == "0.1"
    assert json.dumps(found["model_metrics"]["metric_control"][0]["histogram_options"]) == (
        '{"buckets": [0.1, 2, "Infinity", "-Infinity"]}'
    )


def test_enum_values_are_read_in_any_case_and_numbers_also_as_text():
    config = parse_json(
        '{"maxBatchSize": 2, "input": [{"data_type": "type_fp32", "dims": ["-1", 3]}],'
        ' "instance_group": [{"kind": 2}], "metric_tags": {"a": "b"}}',
        "test",
    )

    assert config.max_batch_size == 2
    assert (config.input[0].data_type, list(config.input[0].dims)) == (11, [-1, 3])
    assert config.instance_group[0].kind == 2
    assert dict(config.metric_tags) == {"a": "b"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"max_batchsize": 1}', "has no field 'max_batchsize'; did you mean 'max_batch_size'?"),
        ('{"input": [{"data_type": "FP32"}]}', "input[0].data_type: DataType has no value 'FP32'"),
        ('{"parameters": {"k": {"value": "v"}}}', "parameters['k']: message ModelParameter has no"),
        ('{"max_batch_size": "x"}', "max_batch_size"),
        ('{"max_batch_size": 2147483648}', "Value out of range: 2147483648"),
        ('{"max_batch_size": 1e400}', "max_batch_size"),
        ('{"max_batch_size": true}', "max_batch_size"),
        ('{"name": 1}', "name: expected a string, got 1"),
        ('{"input": [{}, {"name": ["a"]}]}', 'input[1].name: expected a string, got ["a"]'),
        ('{"metric_tags": {"a": 1}}', "metric_tags['a']: expected a string, got 1"),
        ('{"name": "\\ud800"}', "name"),
        ('{"instance_group": [{"kind": 1.5}]}', "instance_group[0].kind: expected a name or a number of Kind, got 1.5"),
        ('{"instance_group": [{"kind": true}]}', "instance_group[0].kind: expected a name or a number of Kind, got true"),
        ('{"input": [{"data_type": 99999999999}]}', "Value out of range: 99999999999"),
        ('{"input": [null]}', "input[0]"),
        ('{"parameters": [1]}', "parameters"),
        ('{"response_cache": {"enable": "true"}}', "response_cache.enable"),
        ('{"max_batch_size": 1.5}', "1.5"),
        ('{"name": "a", "name": "b"}', "'name' is given twice in one object"),
        ('{"input": {"name": "a"}}', "input"),
        ('{"dynamic_batching": {}, "sequence_batching": {}}', "oneof"),
        ("[]", "expected a JSON object, got list"),
        ("{", "line 1 column 2"),
        ("", "line 1 column 1"),
        ('{"a":' * 100_000, "nested too deeply"),
    ],
)  # fmt: skip
def test_a_load_request_with_wrong_json_is_refused(text, expected):
    with pytest.raises(CoreError) as caught:
        parse_json(text, "parameter 'config'")

    assert caught.value.kind is Kind.INVALID
    assert expected in caught.value.message
    assert "parameter 'config'" in caught.value.message
