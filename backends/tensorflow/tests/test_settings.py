"""Parameters in config.pbtxt and keys of --backend-config."""

import pytest
from backend_tensorflow.settings import ServerSettings, Settings, server_settings_of, settings_of

from core.config import parse_text
from core.errors import CoreError


def of(**parameters):
    text = " ".join(
        f'parameters {{ key: "{name}" value {{ string_value: "{value}" }} }}'
        for name, value in parameters.items()
    )
    return settings_of(parse_text(f'name: "m" {text}', "config.pbtxt"))


def test_defaults():
    assert of() == Settings()


def test_every_parameter():
    assert of(
        TF_GRAPH_TAG="serve, gpu",
        TF_SIGNATURE_DEF="classify",
        TF_NUM_INTRA_THREADS="3",
        TF_NUM_INTER_THREADS="2",
        TF_USE_PER_SESSION_THREADS="0",
        TF_INIT_OPS_FILE="ops.json",
        MAX_SESSION_SHARE_COUNT="5",
    ) == Settings(("serve", "gpu"), "classify", 3, 2, False, "ops.json", 5)


@pytest.mark.parametrize(
    ("given", "own"),
    [
        ({}, False),
        ({"TF_NUM_INTER_THREADS": "2"}, True),
        ({"TF_NUM_INTER_THREADS": "2", "TF_USE_PER_SESSION_THREADS": "Off"}, False),
        ({"TF_USE_PER_SESSION_THREADS": "On"}, True),
        ({"TF_USE_PER_SESSION_THREADS": "True"}, True),
    ],
)
def test_a_number_of_threads_makes_them_those_of_the_session(given, own):
    assert of(**given).own_threads is own


def test_the_number_of_instances_of_a_session_has_two_names():
    assert of(TF_MAX_SESSION_SHARE_COUNT="2").sharing == 2


@pytest.mark.parametrize("value", ["-1", "x", "1.5", "99999", "٣"])
@pytest.mark.parametrize("name", ["TF_NUM_INTRA_THREADS", "MAX_SESSION_SHARE_COUNT"])
def test_a_wrong_number_is_an_error_with_what_is_expected(name, value):
    with pytest.raises(CoreError, match=f"expected the parameter '{name}' to be a whole number fr"):
        of(**{name: value})


def test_a_wrong_word_is_an_error():
    with pytest.raises(
        CoreError, match="'TF_USE_PER_SESSION_THREADS' to be true or false, got yes"
    ):
        of(TF_USE_PER_SESSION_THREADS="yes")


@pytest.mark.parametrize("value", ["../ops.json", "/etc/ops.json", "..", "a/b.json"])
def test_a_file_outside_of_the_folder_of_the_version_is_an_error(value):
    with pytest.raises(
        CoreError, match="'TF_INIT_OPS_FILE' to be the name of a file in the folder"
    ):
        of(TF_INIT_OPS_FILE=value)


def test_settings_of_the_command_line():
    given = {"allow-soft-placement": "false", "gpu-memory-fraction": "0.5", "version": "2"}

    assert server_settings_of({}) == ServerSettings(True, 0.0)
    assert server_settings_of(given) == ServerSettings(False, 0.5)


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("allow-soft-placement", "perhaps", "expected true or false"),
        ("gpu-memory-fraction", "1.5", "expected a number from 0 to 1"),
        ("gpu-memory-fraction", "nan", "expected a number from 0 to 1"),
        ("version", "1", "expected 2: this backend has no TensorFlow 1, but runs its models"),
    ],
)
def test_a_wrong_setting_of_the_command_line_is_an_error(key, value, expected):
    with pytest.raises(CoreError, match=f"--backend-config=tensorflow,{key}={value}: {expected}"):
        server_settings_of({key: value})
