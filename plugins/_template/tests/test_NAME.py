"""A server finds the installed plugin by its entry point and calls it."""

import logging

import core


def test_the_plugin_is_called_when_a_server_starts(caplog):
    caplog.set_level(logging.INFO, "core")

    with core.Server(model_control_mode="explicit"):
        pass

    assert "NAME: the server starts, control mode 'explicit'" in caplog.text
