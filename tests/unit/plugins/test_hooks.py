"""Callers of hooks get the results of plugins, or an error that names the plugin."""

import asyncio
import logging
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest

import core
from core import hookspecs, plugins, serve
from core.errors import CoreError, Kind, unavailable
from core.options import Flags, UsageError, parse, usage

HOOKS = [name for name in vars(hookspecs) if name.startswith("core_")]


@pytest.fixture
def plugin():
    """Register functions as a plugin of that name: plugin("mine", core_failed=…)."""
    before = set(plugins.hooks().get_plugins())

    def register(name, **functions):
        for hook, function in functions.items():
            function.__name__ = hook
            core.hookimpl(function)
        plugins.hooks().register(SimpleNamespaceById(**functions), name)

    yield register
    for each in set(plugins.hooks().get_plugins()) - before:
        plugins.hooks().unregister(each)


class SimpleNamespaceById(SimpleNamespace):
    """Plugins are compared by identity, not by content."""

    __hash__ = object.__hash__
    __eq__ = object.__eq__


def broken(error):
    raise ValueError("it broke")


def test_the_hooks_are_those_of_the_page():
    assert sorted(HOOKS) == [
        *("core_add_options", "core_around_load", "core_arrange_ensemble"),
        *("core_batch_done", "core_batch_rule"),
        "core_complete_config",
        *("core_explain_layout", "core_failed", "core_layers", "core_model_changed"),
        *("core_models_loaded", "core_open_cache", "core_open_log"),
        *("core_open_metric_source", "core_open_repository", "core_open_repository_agent"),
        "core_open_trace_exporter",
        *("core_run_server", "core_server_starting", "core_server_stopping"),
        "core_workers_starting",
    ]


@pytest.mark.parametrize("name", HOOKS)
def test_every_hook_documents_its_call_and_its_thread(name):
    text = getattr(hookspecs, name).__doc__

    assert "Called" in text
    assert "thread" in text


def test_an_exception_names_the_plugin_that_raised_it(plugin):
    plugin("good", core_workers_starting=lambda options: None)
    plugin("bad", core_workers_starting=lambda options: 1 / 0)

    with pytest.raises(CoreError) as caught:
        plugins.ask("core_workers_starting", options=None)

    assert caught.value.kind is Kind.INTERNAL
    assert re.fullmatch(
        r"plugin 'bad' failed in core_workers_starting at \S+/test_hooks\.py:\d+: "
        "ZeroDivisionError: division by zero",
        caught.value.message,
    )


def test_a_core_error_of_a_plugin_is_raised_unchanged(plugin):
    def refuse(options):
        raise unavailable("not today")

    plugin("mine", core_workers_starting=refuse)

    with pytest.raises(CoreError, match=r"^not today$"):
        plugins.ask("core_workers_starting", options=None)


def test_plugins_after_a_broken_one_are_still_called(plugin, caplog):
    seen = []
    plugin("last", core_server_stopping=lambda server: seen.append("last"))
    plugin("bad", core_server_stopping=lambda server: 1 / 0)
    plugin("first", core_server_stopping=lambda server: seen.append("first"))

    with caplog.at_level(logging.ERROR, "core"):
        plugins.tell("core_server_stopping", server=None)

    assert seen == ["first", "last"]
    assert "plugin 'bad' failed in core_server_stopping at tests/unit/plugins/" in caplog.text
    assert "ZeroDivisionError" in caplog.text


def test_there_is_no_listener_before_the_first_plugin(plugin):
    assert not plugins.listens("core_failed")
    assert plugins.teller_of("core_failed") is None

    plugin("mine", core_failed=lambda error: None)

    assert plugins.listens("core_failed")


def test_errors_that_are_only_logged_reach_the_hook(plugin):
    seen = []
    plugin("mine", core_failed=lambda error, where: seen.append((str(error), where)))
    plugins.load_hooks()

    try:
        raise ValueError("lost")
    except ValueError:
        logging.getLogger("core").exception("closing instance '%s' failed", "m_0")
    logging.getLogger("core").error("seen by those who asked")

    assert seen == [("lost", "closing instance 'm_0' failed")]


def test_errors_of_tasks_without_a_waiter_reach_the_hook(plugin):
    seen = []
    plugin("mine", core_failed=lambda error: seen.append(str(error)))
    plugins.load_hooks()

    async def forget():
        loop = asyncio.get_running_loop()
        loop.call_exception_handler({"message": "lost", "exception": ValueError("lost")})

    asyncio.run(forget())

    assert seen == ["lost"]


def test_a_plugin_that_fails_in_core_failed_is_named_once(plugin, caplog):
    plugin("bad", core_failed=broken)
    plugins.load_hooks()

    with caplog.at_level(logging.ERROR, "core"):
        try:
            raise ValueError("lost")
        except ValueError:
            logging.getLogger("core").exception("something failed")

    assert caplog.text.count("plugin 'bad' failed in core_failed at ") == 1


# flags --------------------------------------------------------------------------------------


def added(**flags):
    parser = Flags()
    for name, default in flags.items():
        parser.add(name.replace("_", "-"), default, f"The {name}.")
    return parser


def test_plugins_add_flags_of_five_kinds():
    flags = added(bucket="", depth=1, ratio=0.5, verbose_s3=False, tenant=[])

    options = parse(
        [
            "--bucket=b",
            "--depth",
            "7",
            "--ratio=2",
            "--verbose-s3=true",
            "--tenant=x",
            "--tenant=y",
        ],
        flags,
    )

    assert options.added == {
        "bucket": "b",
        "depth": 7,
        "ratio": 2.0,
        "verbose_s3": True,
        "tenant": ["x", "y"],
    }


def test_flags_that_are_not_given_have_their_defaults():
    flags = added(bucket="b", tenant=[])

    options = parse([], flags)
    options.added["tenant"].append("changed")

    assert options.added == {"bucket": "b", "tenant": ["changed"]}
    assert parse([], flags).added == {"bucket": "b", "tenant": []}


def test_a_wrong_value_of_an_added_flag_is_refused_as_any_other():
    with pytest.raises(UsageError, match="depth"):
        parse(["--depth=deep"], added(depth=1))


def test_added_flags_are_the_last_of_the_help():
    text = usage(added(bucket="b"))

    assert text.index("Plugins:") > text.index("Memory/Device Management:")
    assert "--bucket <string>" in text
    assert "The bucket. Default: b." in text


@pytest.mark.parametrize(
    ("name", "default", "text"),
    [
        ("http-port", 1, "flag --http-port is there already"),
        ("help", "", "flag --help is there already"),
        ("Bad_Name", "", "cannot be a flag"),
        ("bucket", None, "its default is of type NoneType, not one of bool, int, float, str, list"),
    ],
)
def test_a_flag_that_cannot_be_is_refused(name, default, text):
    with pytest.raises(CoreError, match=text):
        plugins.flags().add(name, default, "Wrong.")


def test_a_plugin_that_fails_to_add_its_flags_ends_the_start_with_its_name(plugin, capsys):
    plugin("bad", core_add_options=lambda parser: parser.add("help", "", "Wrong."))

    assert serve.main(["--model-repository=/m"]) == 1

    assert (
        "creating server: Invalid argument - flag --help is there already"
        in capsys.readouterr().err
    )


# the environment ------------------------------------------------------------------------------


def test_core_trace_hooks_writes_every_call(tmp_path):
    script = """
import core
from core import plugins

class Plugin:
    @core.hookimpl
    def core_model_changed(self, state):
        if state == "failed":
            raise ValueError("bad day")

plugins.hooks().register(Plugin(), "mine")
plugins.tell("core_server_stopping", server=1)
plugins.tell("core_model_changed", model="m", state="ready", reason="")
plugins.tell("core_model_changed", model="m", state="failed", reason="")
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"CORE_TRACE_HOOKS": "1", "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )

    lines = done.stderr.splitlines()
    assert lines[:3] == [
        "hook core_server_stopping(server=1) → nobody",
        "hook core_model_changed(model='m', state='ready', reason='') → mine",
        "hook core_model_changed gave []",
    ]
    assert "hook core_model_changed raised ValueError('bad day')" in lines
