"""Imports by the command itself, and a server of what was imported."""

import argparse

import pytest
from core_importers import command
from core_testing.served import Served


@pytest.fixture
def repository(tmp_path):
    return tmp_path / "models"


@pytest.fixture
def run(repository, capsys):
    """Run `core import SOURCE REPOSITORY …`; return its status, what it printed, and its errors."""

    def run(source, *options):
        parser = argparse.ArgumentParser()
        command.arguments(parser)
        status = command.run(parser.parse_args([str(source), str(repository), *options]))
        out, err = capsys.readouterr()
        return status, out, err

    return run


@pytest.fixture
def imported(run):
    """Import a source; return the report. The import must succeed."""

    def imported(source, *options):
        status, out, err = run(source, *options)
        assert status == 0, err
        return out

    return imported


@pytest.fixture
def refused(run, repository):
    """Import a source that cannot be taken; return the error. The repository stays empty."""

    def refused(source, *options):
        before = sorted(repository.glob("*"))
        status, out, err = run(source, *options)
        assert (status, out) == (1, "")
        assert err.startswith("error: ")
        assert sorted(repository.glob("*")) == before
        assert not list(repository.parent.glob(".core-import-*"))
        return err.removeprefix("error: ").strip()

    return refused


@pytest.fixture
def served(repository):
    """served(name): start a real server, load this model of the repository, and return the server."""
    found = []

    def served(name):
        server = Served(None, repository)
        found.append(server)
        server.__enter__()
        server.load(name)
        return server

    yield served
    for server in found:
        server.__exit__(None, None, None)
