"""Tracers with settings of a test, and plugins with an exporter."""

from types import SimpleNamespace

import pytest
from unit.telemetry.kept_traces import Exporter, new

import core
from core import plugins


@pytest.fixture
def tracer(tmp_path):
    def make(*settings, file=True, **modes):
        config = {"": list(settings), **modes}
        if file:
            config["triton"] = [("file", str(tmp_path / "trace"))]
        return new(config)

    return make


@pytest.fixture
def offer():
    """Register a plugin with an exporter for a mode; return a list of the settings that it gets."""
    registered = []

    def register(mode, exporter):
        given = []

        def open_it(mode, settings, options):
            assert dict(options.trace_config[""])
            if mode != of_plugin:
                return None
            given.append(settings)
            return exporter

        of_plugin = mode
        plugin = SimpleNamespace(core_open_trace_exporter=core.hookimpl(open_it))
        plugins.hooks().register(plugin, f"test of {mode}")
        registered.append(plugin)
        return given

    yield register
    for plugin in registered:
        plugins.hooks().unregister(plugin)


@pytest.fixture
def exporting(tracer, offer):
    """Make a tracer in the mode `kept` of a plugin; return it and its exporter."""

    def make(*settings, **kind):
        exporter = Exporter(**kind)
        offer("kept", exporter)
        return tracer(("mode", "kept"), *settings, file=False), exporter

    return make
