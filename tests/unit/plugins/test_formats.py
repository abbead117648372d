"""Formats that a distribution declares: which file belongs to which backend."""

import logging

import pytest

from core import plugins
from core.config import Format, fill, parse_text
from core.errors import CoreError

BACKEND = "import core\n\nbackend = core.Backend(instance=core.ModelInstance)\n"


def declared(file):
    return [each for each in plugins.formats() if each.file == file]


def test_a_file_belongs_to_the_backend_of_its_distribution(install):
    install(
        "backend-plug",
        "[core.backends]\nplug = plug_format:backend\n[core.formats]\nmodel.plug = plug\n",
        {"plug_format": "1 / 0"},  # nothing is imported
    )
    config = parse_text("", "test")

    fill(config, "m", plugins.formats(), ["model.plug"])

    assert (config.backend, config.platform, config.default_model_filename) == (
        "plug",
        "",
        "model.plug",
    )
    assert declared("model.plug") == [Format("model.plug", "plug")]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("plug [folder]", Format("model.plug", "plug", may_be_file=False, may_be_folder=True)),
        ("plug[file, folder]", Format("model.plug", "plug", may_be_folder=True)),
        (
            "plug:plug_plan [old_plan, 3]",
            Format("model.plug", "plug", "plug_plan", ("old_plan",), order=3),
        ),
        ("plug-in:word", Format("model.plug", "plug-in", "word")),
    ],
)
def test_an_entry_point_declares_file_kind_and_platform(install, value, expected):
    install("backend-plug", f"[core.formats]\nmodel.plug = {value}\n", {})

    assert declared("model.plug") == [expected]


@pytest.mark.parametrize("value", ["", "plug!", "plug:", "plug [a", "a b"])
def test_a_value_that_cannot_be_understood_is_left_out_and_logged(install, caplog, value):
    install("backend-plug", f"[core.formats]\nmodel.plug = {value}\nmodel.good = plug\n", {})

    with caplog.at_level(logging.ERROR, "core"):
        assert declared("model.plug") == []

    assert f"format 'model.plug' of backend-plug 1.0 is left out: found '{value}'" in caplog.text
    assert declared("model.good")


def test_a_format_is_hidden_with_its_distribution(install, monkeypatch):
    install("backend-plug", "[core.formats]\nmodel.plug = plug\n", {})
    assert declared("model.plug")

    monkeypatch.setenv("CORE_BLOCK", "backend-plug")

    assert declared("model.plug") == []


def test_two_distributions_may_name_one_file_for_one_backend(install):
    for name in ("backend-plug", "other-plug"):
        install(name, "[core.formats]\nmodel.plug = plug\n", {})

    assert declared("model.plug") == [Format("model.plug", "plug")]


def test_two_backends_of_one_file_leave_the_choice_to_the_configuration(install):
    install("backend-plug", "[core.formats]\nmodel.plug = plug\n", {})
    install("other-plug", "[core.formats]\nmodel.plug = plug_other\n", {})

    with pytest.raises(CoreError, match=r"model.plug \('plug'\), model.plug \('plug_other'\)"):
        fill(parse_text("", "test"), "m", plugins.formats(), ["model.plug"])


def test_a_file_of_a_missing_backend_is_unknown_and_the_error_names_the_package(
    monkeypatch,
):
    monkeypatch.setenv("CORE_BLOCK", "backend-onnx,onnxruntime,onnx")

    with pytest.raises(CoreError) as caught:
        fill(parse_text("", "test"), "m", plugins.formats(), ["model.onnx"])

    assert "found model.onnx; known are model.savedmodel," in caught.value.message
    assert caught.value.message.endswith("; try: pip install --find-links wheels 'core[onnx]'")


def test_the_formats_of_this_project_are_searched_in_tritons_order():
    assert [each.file for each in plugins.formats()][:8] == [
        "model.savedmodel",
        "model.graphdef",
        "model.plan",
        "model.onnx",
        "model.xml",
        "model.pt",
        "model.pt2",
        "model.py",
    ]
