"""Whatever one field of a configuration is changed to: it loads, or is refused with its model's name."""

from google.protobuf.descriptor import FieldDescriptor
from hypothesis import given, settings
from hypothesis import strategies as st

from core import plugins
from core.config import (
    ModelConfig,
    fill,
    normalise,
    parse_json,
    parse_text,
    signature_of,
    to_json,
    validate,
)
from core.errors import CoreError, Kind

IO = """
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1, 4 ] reshape { shape: [ -1, 2, 2 ] } } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 4 ] label_filename: "labels.txt" } ]
"""
MODELS = [
    """
    backend: "python" max_batch_size: 8 default_model_filename: "model.py" runtime: "model.py"
    version_policy { specific { versions: 1 } }
    dynamic_batching {
      preferred_batch_size: [ 2, 8 ] priority_levels: 3 default_priority_level: 2
      default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 7 }
      priority_queue_policy { key: 3 value { max_queue_size: 2 } }
    }
    instance_group { name: "g" count: 2 kind: KIND_CPU rate_limiter { resources { name: "R" count: 1 } } }
    batch_input { kind: BATCH_ITEM_SHAPE target_name: "s" data_type: TYPE_FP32 source_input: "x" }
    batch_output { target_name: "y" source_input: "x" }
    model_warmup { name: "w" batch_size: 1 count: 1
                   inputs { key: "x" value { data_type: TYPE_FP32 dims: [ 1, 4 ] zero_data: true } } }
    response_cache { enable: true } metric_tags { key: "a" value: "b" }
    model_metrics { metric_control { metric_identifier { family: "f" }
                                     histogram_options { buckets: [ 1, 2 ] } } }
    """
    + IO,
    """
    backend: "python" max_batch_size: 4
    sequence_batching {
      oldest { max_candidate_sequences: 2 preferred_batch_size: 4 }
      control_input [
        { name: "S" control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } },
        { name: "C" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } } ]
      state { input_name: "i" output_name: "o" data_type: TYPE_FP32 dims: [ 2 ]
              initial_state { name: "n" data_type: TYPE_FP32 dims: [ 2 ] zero_data: true } }
    }
    """
    + IO,
    """
    platform: "ensemble" max_batch_size: 4
    ensemble_scheduling { step [
      { model_name: "a" model_version: -1
        input_map { key: "i" value: "x" } output_map { key: "o" value: "t" } },
      { model_name: "b" model_version: 1
        input_map { key: "i" value: "t" } output_map { key: "o" value: "y" } } ] }
    parameters { key: "step[1].if" value { string_value: "x" } }
    """
    + IO,
    """
    platform: "onnxruntime_onnx" instance_group { kind: KIND_GPU gpus: 0 }
    cc_model_filenames { key: "7.5" value: "b" }
    """
    + IO,
]
F = FieldDescriptor
EDGES = st.sampled_from([0, 1, -1, -2, 2**31 - 1, -(2**31), 7])
JUNK = {
    F.CPPTYPE_INT32: EDGES | st.integers(-(2**31), 2**31 - 1),
    F.CPPTYPE_UINT32: st.sampled_from([0, 1, 2**32 - 1]) | st.integers(0, 2**32 - 1),
    F.CPPTYPE_INT64: EDGES | st.sampled_from([2**63 - 1, -(2**63)]) | st.integers(-9, 9),
    F.CPPTYPE_UINT64: st.sampled_from([0, 1, 4, 2**64 - 1]),
    F.CPPTYPE_BOOL: st.booleans(),
    F.CPPTYPE_ENUM: st.integers(-1, 20) | st.just(2**31 - 1),
    F.CPPTYPE_FLOAT: st.floats(width=32),
    F.CPPTYPE_DOUBLE: st.floats(),
    F.CPPTYPE_STRING: st.sampled_from(["", "x", "y", "../../a", "/etc/passwd", "a\0b", "ensemble"])
    | st.text(max_size=6),
}
UNWRITTEN = "failed to open text file for read"  # a file that the changed name does not have


def places(message):
    """(message, field) for every field of a message and of those in it."""
    for field in message.DESCRIPTOR.fields:
        yield message, field
        if field.message_type is None:
            continue
        value = getattr(message, field.name)
        if field.message_type.GetOptions().map_entry:
            if field.message_type.fields_by_name["value"].message_type is not None:
                for key in value:
                    yield from places(value[key])
        elif hasattr(value, "add"):
            for each in value:
                yield from places(each)
        elif message.HasField(field.name):
            yield from places(value)


def change(draw, message, field):
    """Give a field another value: empty, absent, one more, twice, or junk."""
    value = getattr(message, field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        entry = field.message_type.fields_by_name
        key = draw(JUNK[entry["key"].cpp_type])
        if entry["value"].message_type is None:
            value[key] = draw(JUNK[entry["value"].cpp_type])
        else:
            value[key].SetInParent()
    elif hasattr(value, "add"):
        if value and draw(st.booleans()):
            value.add().CopyFrom(value[0])
        elif draw(st.booleans()):
            value.add()
        else:
            del value[:]
    elif hasattr(value, "extend"):
        kept = list(value) if draw(st.booleans()) else []
        del value[:]
        value.extend(kept + draw(st.lists(JUNK[field.cpp_type], max_size=2)))
    elif field.message_type is not None:
        if message.HasField(field.name) and draw(st.booleans()):
            message.ClearField(field.name)
        else:
            value.SetInParent()
    else:
        setattr(message, field.name, draw(JUNK[field.cpp_type]))


@st.composite
def changed(draw):
    """Return a valid configuration with one changed field."""
    config = parse_text(draw(st.sampled_from(MODELS)), "test")
    config.name = "mm"
    message, field = draw(st.sampled_from(list(places(config))))
    change(draw, message, field)
    config.name = "mm"
    return config


@given(config=changed(), gpus=st.sampled_from([(), (0,), (1, 3)]))
@settings(max_examples=700)
def test_a_changed_configuration_loads_or_is_refused_by_name(tmp_path_factory, config, gpus):
    folder = tmp_path_factory.getbasetemp()
    (folder / "labels.txt").write_text("a\n")
    try:
        fill(config, "mm", plugins.formats())
        normalise(config, {}, gpus)
        validate(config, plugins.formats(), gpus)
        signature_of(config, folder)
    except CoreError as error:
        unwritten = error.kind is Kind.INTERNAL and error.message.startswith(UNWRITTEN)
        assert error.kind in (Kind.INVALID, Kind.UNSUPPORTED) or unwritten
        assert "mm" in error.message or unwritten
    else:
        assert to_json(config)["name"] == "mm"


WORDS = st.text(max_size=3) | st.sampled_from(
    ["{", "}", "[", "]", ":", "input", "dims", "name", '"mm"', "TYPE_FP32", "-1", "kind", "9", '"']
)


@given(words=st.lists(WORDS, max_size=12))
@settings(max_examples=300)
def test_text_of_any_kind_is_a_configuration_or_refused_with_its_place(words):
    for parse in (parse_text, parse_json):
        try:
            found = parse(" ".join(words), "models/mm/config.pbtxt")
        except CoreError as error:
            assert error.kind is Kind.INVALID
            assert "models/mm/config.pbtxt" in error.message
        else:
            assert isinstance(found, ModelConfig)
