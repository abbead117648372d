"""The current content of a model's file is run, whatever other files are beside it."""

import os
import sys

import pytest
from backend_python import runner


@pytest.fixture
def write(tmp_path):
    """Return write(text), which returns the path of a model.py whose time is always the same whole second."""

    def write(text):
        file = tmp_path / "model.py"
        file.write_text(text)
        os.utime(file, (1_000_000_000, 1_000_000_000))
        return str(file)

    return write


@pytest.fixture
def with_bytecode(monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)


@pytest.mark.usefixtures("with_bytecode")
def test_a_change_within_a_second_that_keeps_the_size_is_seen(write):
    first = runner.load_module(write("FACTOR = 2\n"), "changed_model")
    second = runner.load_module(write("FACTOR = 5\n"), "changed_model")

    assert (first.FACTOR, second.FACTOR) == (2, 5)


@pytest.mark.usefixtures("with_bytecode")
def test_no_file_is_written_next_to_the_model(write, tmp_path):
    runner.load_module(write("FACTOR = 2\n"), "clean_model")

    assert [entry.name for entry in tmp_path.iterdir()] == ["model.py"]


def test_a_file_that_is_no_python_is_refused_by_name(tmp_path):
    file = tmp_path / "model.txt"
    file.write_text("FACTOR = 2\n")

    with pytest.raises(ImportError, match=r"model\.txt' is no Python file"):
        runner.load_module(str(file), "text_model")
