"""Repositories in temporary folders, and the command as a program calls it."""

import argparse
import json

import pytest

from core import plugins
from frontends.commands.check import command


@pytest.fixture(autouse=True, scope="session")
def _hooks():
    plugins.load_hooks()


@pytest.fixture
def check(capsys):
    """Run `core check PATH …`; return its status, and what it printed."""

    def check(*arguments):
        parser = argparse.ArgumentParser()
        command.arguments(parser)
        status = command.run(parser.parse_args([str(each) for each in arguments]))
        return status, capsys.readouterr().out

    return check


@pytest.fixture
def findings(check):
    """Check a path; return its findings as dicts of the JSON form, with the name of their model."""

    def findings(*arguments):
        _, out = check(*arguments, "--format", "json")
        value = json.loads(out)
        of_models = [
            {"model": model["name"], **each}
            for model in value["models"]
            for each in model["findings"]
        ]
        return [*({"model": None, **each} for each in value["findings"]), *of_models]

    return findings
