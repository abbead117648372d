"""A misspelled name of a parameter is logged; names for other readers are not."""

import logging

import pytest

import core
from core.config import ModelConfig
from core.lifecycle.parameters import slip, warn_of_settings, warn_of_slips
from core.plugins import HostedBackend

KNOWN = ("threads", "arena.shrinkage", "SHARE", "session.*")


class Instance(core.ModelInstance):
    pass


def backend_of(**known):
    found = core.Backend(instance=Instance, **known)
    found.name = "b"
    return found


def model_with(*names):
    config = ModelConfig(name="m")
    for name in names:
        config.parameters[name].string_value = "1"
    return config


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("threads", ""),
        ("session.intra_op.allow_spinning", ""),
        ("thread", "; it has no effect; is 'threads' meant?"),
        ("share", "; it has no effect; is 'SHARE' meant?"),
        ("colour", "; it has no effect"),
        ("session", "; it has no effect"),
    ],
)
def test_an_unused_name_is_logged_with_the_nearest_one(name, text):
    assert slip(name, KNOWN) == text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("my_own", ""),
        ("arena.shrinkage", ""),
        ("arena.shrinkag", " of its own; is 'arena.shrinkage' meant?"),
        ("arena.growth", ""),
    ],
)
def test_of_passed_on_names_only_near_misses_are_logged(name, text):
    assert slip(name, (*KNOWN, "*")) == text


def test_a_model_gets_warnings_of_its_near_misses_only(caplog):
    config = model_with("thraeds", "EXECUTION_MODE", "sequences_keep_their_connection", "SHARE")

    with caplog.at_level(logging.WARNING, "core"):
        warn_of_slips(config, backend_of(known_parameters=KNOWN))

    assert caplog.messages == [
        "model 'm': backend 'b' has no parameter 'thraeds'; it has no effect; is 'threads' meant?"
    ]


def test_a_parameter_of_core_is_known_where_the_backend_has_one_in_another_case(caplog):
    backend = backend_of(known_parameters=("execution_mode",))

    with caplog.at_level(logging.WARNING, "core"):
        warn_of_slips(model_with("EXECUTION_MODE", "execution_mode"), backend)
        warn_of_slips(model_with("execution_mod"), backend)

    assert caplog.messages == [
        "model 'm': backend 'b' has no parameter 'execution_mod'; it has no effect; is "
        "'EXECUTION_MODE' or 'execution_mode' meant?"
    ]


def test_a_backend_without_declared_names_gets_no_warnings(caplog):
    warn_of_slips(model_with("thraeds"), backend_of())
    warn_of_settings(["thraeds"], backend_of())

    assert not caplog.messages


def test_a_model_in_a_child_process_has_the_parameters_of_both_backends(caplog):
    hosted = HostedBackend(instance=Instance, known_parameters=("timeout",))
    hosted.name, hosted.isolated = "b", backend_of(known_parameters=("threads",))

    warn_of_slips(model_with("timeout", "threads", "colour"), hosted)
    hosted.isolated.known_parameters = None
    warn_of_slips(model_with("timeout", "threads", "colour"), hosted)

    assert caplog.messages == ["model 'm': backend 'b' has no parameter 'colour'; it has no effect"]


def test_an_unused_key_of_backend_config_is_logged_too(caplog):
    backend = backend_of(known_settings=("pool",))

    warn_of_settings(["pool", "pol", "default-max-batch-size"], backend)

    assert caplog.messages == [
        "--backend-config=b,pol: there is no such setting; it has no effect; is 'pool' meant?"
    ]


@pytest.mark.parametrize("what", ["known_parameters", "known_settings"])
def test_one_text_is_no_list_of_names(what):
    with pytest.raises(TypeError, match=rf"{what}='threads'\): expected names, such as"):
        backend_of(**{what: "threads"})
