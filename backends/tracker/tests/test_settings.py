"""Parameters: where they come from, their ranges, and what an error says."""

import inspect
import json

import pytest
from backend_tracker import backend
from backend_tracker.settings import DEFAULTS, FILE, PARAMETERS, settings_of

from core.config import ModelConfig
from core.errors import CoreError

pytest_plugins = ["core_testing.plugin"]


def test_the_defaults_are_those_of_the_reference():
    reference = pytest.importorskip("trackers")
    classes = {
        "bytetrack": reference.ByteTrackTracker,
        "ocsort": reference.OCSORTTracker,
        "botsort": reference.BoTSORTTracker,
    }
    for tracker, defaults in DEFAULTS.items():
        known = inspect.signature(classes[tracker]).parameters
        for name, value in defaults.items():
            if name != "report_lost_tracks":
                assert value == known[name].default, (tracker, name)


@pytest.mark.parametrize(
    "buffer, rate, frames", [(30, 30, 30), (30, 60, 60), (3, 15, 2), (1, 5, 1), (0, 30, 0)]
)
def test_the_buffer_counts_frames_at_thirty_per_second(read_settings, buffer, rate, frames):
    assert read_settings(lost_track_buffer=buffer, frame_rate=rate).lost_frames == frames


def test_the_threshold_of_supervision_is_one_minus_the_overlap(read_settings):
    found = read_settings(minimum_matching_threshold=0.75)

    assert found.minimum_iou_threshold == 0.25


@pytest.mark.parametrize(
    "parameters, message",
    [
        (
            {"tracker": "sort"},
            "parameter 'tracker' is 'sort', it must be bytetrack or ocsort or botsort",
        ),
        ({"track_activation_threshold": "1.5"}, "is '1.5', it must be a number from 0 to 1"),
        ({"track_activation_threshold": "high"}, "is 'high', it must be a number from 0 to 1"),
        ({"minimum_iou_threshold": "nan"}, "is 'nan', it must be a number from 0 to 1"),
        ({"minimum_matching_threshold": "2"}, "'minimum_matching_threshold' is '2', it must be"),
        ({"lost_track_buffer": "-1"}, "a whole number from 0 to 1000000"),
        ({"lost_track_buffer": "2.5"}, "a whole number from 0 to 1000000"),
        ({"minimum_consecutive_frames": "0"}, "a whole number from 1 to 1000000"),
        ({"frame_rate": "0"}, "frames per second, above 0"),
        ({"frame_rate": "inf"}, "frames per second, above 0"),
        ({"report_lost_tracks": "maybe"}, "true or false"),
        (
            {"delta_t": "3"},
            "sets 'delta_t', which tracker 'bytetrack' does not have; its parameters are",
        ),
        (
            {"minimum_matching_threshold": "0.8", "minimum_iou_threshold": "0.2"},
            "which mean the same",
        ),
    ],
)
def test_an_error_names_model_parameter_and_range(read_settings, parameters, message):
    with pytest.raises(CoreError) as raised:
        read_settings(**{"tracker": "bytetrack", **parameters})

    assert message in raised.value.message
    assert "'cars'" in raised.value.message


@pytest.mark.parametrize(
    "content, message",
    [
        ("{", "is not JSON"),
        ("[1]", "is a JSON list, it must be an object of parameters"),
        ('{"delta_t": [1]}', "'delta_t' is [1], it must be a number or a text"),
        ('{"tracker": "sort"}', "change it in"),
        ('{"frame_rate": true}', "frames per second"),
        ("\xff\xfe\x00", "cannot be read"),
        ('{"frame_rate": ' + "9" * 400 + "}", "frames per second"),
        ("[" * 200_000, "is not JSON"),
    ],
)
def test_a_damaged_file_is_named(read_settings, tmp_path, content, message):
    (tmp_path / FILE).write_bytes(content.encode("latin-1"))

    with pytest.raises(CoreError) as raised:
        settings_of(ModelConfig(name="cars"), tmp_path)

    assert message in raised.value.message
    assert FILE in raised.value.message


def test_config_pbtxt_takes_precedence_over_the_file(read_settings, tmp_path):
    (tmp_path / FILE).write_text(json.dumps({"tracker": "ocsort", "delta_t": 2, "frame_rate": 25}))

    found = read_settings("ocsort", tmp_path, delta_t=5)

    assert (found.tracker, found.delta_t, found.frame_rate) == ("ocsort", 5, 25)


def test_a_model_needs_only_a_backend(model_repository, serve_repository):
    model_repository.add("cars", 'backend: "tracker"')

    config = serve_repository(backend).config("cars")

    assert {each.name: list(each.dims) for each in config.input} == {
        "boxes": [-1, 4],
        "scores": [-1],
        "classes": [-1],
    }
    assert [each.name for each in config.output] == ["ids", "boxes", "scores", "classes", "states"]
    assert config.sequence_batching.oldest.max_candidate_sequences == 4096


def test_a_model_needs_only_a_file(model_repository, serve_repository):
    model_repository.add("cars", files={FILE: '{"tracker": "botsort"}'})

    config = serve_repository(backend).config("cars")

    assert config.max_batch_size == 64


def test_what_config_pbtxt_says_stays(model_repository, serve_repository):
    model_repository.add(
        "cars",
        'backend: "tracker" input { name: "boxes" data_type: TYPE_FP32 dims: [ 300, 4 ] } '
        'output { name: "ids" data_type: TYPE_INT64 dims: [ -1 ] } sequence_batching { direct { } }',
    )

    config = serve_repository(backend).config("cars")

    assert list(config.input[0].dims) == [300, 4]
    assert len(config.input) == len(config.output) == 1
    assert config.max_batch_size == 0
    assert config.sequence_batching.HasField("direct")


@pytest.mark.parametrize(
    "text, message",
    [
        (
            'input { name: "box" data_type: TYPE_FP32 dims: [ -1, 4 ] }',
            "the inputs of a tracker are boxes",
        ),
        (
            'input { name: "boxes" data_type: TYPE_FP64 dims: [ -1, 4 ] }',
            "is TYPE_FP64, it must be TYPE_FP32",
        ),
        ('input { name: "boxes" data_type: TYPE_FP32 dims: [ 4, -1 ] }', "they must be [-1, 4]"),
        ('input { name: "scores" data_type: TYPE_FP32 dims: [ -1 ] }', "has no input 'boxes'"),
        ('output { name: "ids" data_type: TYPE_INT32 dims: [ -1 ] }', "it must be TYPE_INT64"),
    ],
)
def test_a_wrong_tensor_fails_the_load(model_repository, serve_repository, text, message):
    model_repository.add("cars", f'backend: "tracker" {text}')

    with pytest.raises(CoreError) as raised:
        serve_repository(backend)

    assert message in raised.value.message


def test_every_parameter_is_known_to_the_server():
    assert set(backend.known_parameters) == set(PARAMETERS)


def test_a_model_without_sequences_is_warned_of(model_repository, serve_repository, caplog):
    model_repository.add("cars", 'backend: "tracker" max_batch_size: 4 dynamic_batching { }')

    serve_repository(backend)

    assert "each frame is tracked on its own" in caplog.text
