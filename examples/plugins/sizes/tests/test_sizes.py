"""The command, run as `core sizes` runs it."""

import argparse

import core_sizes
import pytest

from core.errors import CoreError


def run(folder):
    parser = argparse.ArgumentParser()
    core_sizes.arguments(parser)
    return core_sizes.run(parser.parse_args([str(folder)]))


def test_each_model_is_a_line_with_the_bytes_of_its_files(tmp_path, capsys):
    for name, size in {"large": 1234567, "small": 8}.items():
        (tmp_path / name / "1").mkdir(parents=True)
        (tmp_path / name / "1" / "model").write_bytes(bytes(size))
    (tmp_path / "small" / "config.pbtxt").write_bytes(bytes(2))
    (tmp_path / "README").write_text("no model")

    assert run(tmp_path) == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["1,234,567", "large"],
        ["10", "small"],
    ]


def test_a_folder_that_is_missing_is_an_error_that_names_it(tmp_path):
    with pytest.raises(CoreError, match="no_such_folder"):
        run(tmp_path / "no_such_folder")
