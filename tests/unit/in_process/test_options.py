"""Keyword arguments of core.Server are the flags of the command line."""

from pathlib import Path

import pytest

import core
from core import CoreError, plugins
from frontends.in_process.options import options_of


class Plugin:
    @core.hookimpl
    def core_add_options(self, parser):
        parser.add("shelf-life", 7, "Days.")


@pytest.fixture
def plugin():
    found = Plugin()
    plugins.hooks().register(found)
    yield
    plugins.hooks().unregister(found)


def refused(**settings):
    with pytest.raises(core.CoreError) as refusal:
        options_of(settings)
    assert refusal.value.kind is core.Kind.INVALID
    return refusal.value.message


@pytest.mark.parametrize("flag", plugins.flags().rows, ids=lambda flag: flag.field)
def test_every_option_takes_its_own_default(flag):
    if flag.default is None:
        return  # one that only text can give

    options = options_of({flag.field: flag.default})

    assert options.value(flag.field) == flag.default


def test_without_settings_all_is_at_its_default():
    assert options_of({}) == plugins.flags().options({})


def test_the_flags_of_plugins_are_settings_too(plugin):
    assert options_of({"shelf_life": 9, "exit_on_error": False}).added["shelf_life"] == 9
    assert options_of({}).added["shelf_life"] == 7
    with pytest.raises(CoreError, match="no option 'shelf_live'; did you mean 'shelf_life'"):
        options_of({"shelf_live": 9})


def test_a_repository_is_a_text_a_path_or_several():
    assert options_of({"model_repository": "a"}).model_repository == ["a"]
    assert options_of({"model_repository": Path("a")}).model_repository == ["a"]
    assert options_of({"model_repository": ["b", Path("a")]}).model_repository == ["a", "b"]


def test_an_option_that_adds_up_is_a_dict_or_the_texts_of_the_flag():
    as_dict = {"onnxruntime": {"threads": "2"}, "": {"x": "1"}}

    assert options_of({"backend_config": as_dict}).backend_config == as_dict
    texts = ["onnxruntime,threads=2", "x=1"]
    assert options_of({"backend_config": texts}).backend_config == as_dict
    text = "local,size=1048576"
    assert options_of({"cache_config": text}).cache_config == {"local": {"size": "1048576"}}


def test_a_misspelled_option_is_refused_with_the_nearest():
    assert refused(model_repositry="a") == (
        "a server has no option 'model_repositry'; did you mean 'model_repository'?"
    )
    assert "docs/operate/options.md" in refused(qqqqqq=1)


def test_values_that_an_option_cannot_have_are_refused_by_its_name():
    assert "option 'model_control_mode'" in refused(model_control_mode="always")
    assert "'exit_timeout_secs'" in refused(exit_timeout_secs=-1)
    assert "'exit_timeout_secs' takes <integer>" in refused(exit_timeout_secs=[1])
    assert "'exit_on_error' takes <boolean>" in refused(exit_on_error="yes")
    assert "'disable_auto_complete_config'" in refused(disable_auto_complete_config=1)
    assert "'backend_config'" in refused(backend_config=3)


def test_options_that_make_no_server_here_are_refused():
    assert "one process" in refused(workers=2)
    assert "model_control_mode='explicit'" in refused(load_model="m")
    assert "single cache" in refused(cache_config={"local": {}, "redis": {}})
